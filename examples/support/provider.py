"""The scripted model of a support agent: `python provider.py &`.

It speaks OpenAI's wire format on 127.0.0.1:8899 (PORT=… for another port). It names the wrong rule
the first time and every twentieth time after that. All later answers follow from the rule.
"""

import os
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply

PORT = int(os.environ.get("PORT", "8899"))


class Model:
    """Answers by the question and its content."""

    def __init__(self) -> None:
        self._ruled = 0

    def __call__(self, request: ModelRequest) -> Reply:
        asked = request.last_user_text
        if asked.startswith("What is this ticket about"):
            return Reply("damage")
        if asked.startswith("Which rule"):
            self._ruled += 1
            return Reply("Returns: 14 days." if self._ruled % 20 == 1 else "Damage: 30 days.")
        if asked.startswith("Refund or refuse?"):
            return Reply("refuse" if "14 days" in asked else "refund")
        too_late = "refuse" in asked
        return Reply("We are sorry, it is too late." if too_late else "We refund you in full.")


if __name__ == "__main__":
    with ProviderServer(Model(), port=PORT) as server:
        print(f"a model listens on {server.url}/v1; stop it with kill %1", flush=True)
        threading.Event().wait()

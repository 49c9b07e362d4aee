"""A model for any agent, scripted: `python provider.py &`.

It speaks the wire formats of OpenAI, Anthropic, Gemini and Ollama on 127.0.0.1:8899 (PORT=… for
another port). Whatever it is asked, it is sure of the answer, but for the first time; and who told
it once that it is not sure gets no better answer after that.
"""

import os
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply

PORT = int(os.environ.get("PORT", "8899"))


class Model:
    """Is unsure once, and goes by what the conversation says."""

    def __init__(self) -> None:
        self._asked = 0

    def __call__(self, request: ModelRequest) -> Reply:
        self._asked += 1
        said = " ".join(message.text for message in request.messages)
        unsure = self._asked == 1 or "not sure" in said
        return Reply("I am not sure." if unsure else "I am sure: it is on its way.")


if __name__ == "__main__":
    with ProviderServer(Model(), port=PORT) as server:
        print(f"a model listens on {server.url}; kill %1 ends it", flush=True)
        threading.Event().wait()

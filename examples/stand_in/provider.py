"""A scripted model for any agent: `python provider.py &`.

It speaks the wire formats of OpenAI, Anthropic, Gemini and Ollama on 127.0.0.1:8899 (PORT=… for
another port). Its first answer is "I am not sure.", to any question. Later answers are sure, unless
the conversation contains the unsure one.
"""

import os
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply

PORT = int(os.environ.get("PORT", "8899"))


class Model:
    """Is unsure in its first answer, and in each conversation that contains an unsure one."""

    def __init__(self) -> None:
        self._asked = 0

    def __call__(self, request: ModelRequest) -> Reply:
        self._asked += 1
        text = " ".join(message.text for message in request.messages)
        unsure = self._asked == 1 or "not sure" in text
        return Reply("I am not sure." if unsure else "I am sure: it is on its way.")


if __name__ == "__main__":
    with ProviderServer(Model(), port=PORT) as server:
        print(f"a model listens on {server.url}; stop it with kill %1", flush=True)
        threading.Event().wait()

"""The scripted model of a shop: `python provider.py &`.

It speaks OpenAI's wire format on 127.0.0.1:8899 (PORT=… for another port). It answers three
questions once all three have arrived: the price first, the delivery last.
"""

import asyncio
import os
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply

PORT = int(os.environ.get("PORT", "8899"))
ANSWERS = {"price": ("9 euros", 0.02), "stock": ("plenty", 0.1), "delivery": ("tomorrow", 0.2)}


class Model:
    """Answers each question after its own delay, counted from the arrival of the last one."""

    def __init__(self) -> None:
        self._asked: list[asyncio.Event] = []

    async def __call__(self, request: ModelRequest) -> Reply:
        if request.last_user_text not in ANSWERS:
            return Reply("9 euros, in stock.")
        text, delay = ANSWERS[request.last_user_text]
        mine = asyncio.Event()
        self._asked.append(mine)
        if len(self._asked) == len(ANSWERS):
            for asked in self._asked:
                asked.set()
            self._asked = []
        await mine.wait()
        return Reply(text, delay=delay)


if __name__ == "__main__":
    with ProviderServer(Model(), port=PORT) as server:
        print(f"a model listens on {server.url}/v1; stop it with kill %1", flush=True)
        threading.Event().wait()

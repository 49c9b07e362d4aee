"""Ask a model, in the tests of what belongs to a session; a thread that is older than it."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from tracefork_core import Tape


def ask(url: str, text: str) -> str:
    """Ask a model, and return what it says: the text, since the provider echoes."""
    body = {"model": "m", "messages": [{"role": "user", "content": f"@say {text}"}]}
    with httpx2.Client(verify=False, timeout=60) as client:
        answer = client.post(f"{url}/v1/chat/completions", json=body)
    said: str = answer.raise_for_status().json()["choices"][0]["message"]["content"]
    return said


async def aask(url: str, text: str) -> str:
    """Ask a model on an event loop."""
    body = {"model": "m", "messages": [{"role": "user", "content": f"@say {text}"}]}
    async with httpx2.AsyncClient(verify=False, timeout=60) as client:
        answer = await client.post(f"{url}/v1/chat/completions", json=body)
    said: str = answer.raise_for_status().json()["choices"][0]["message"]["content"]
    return said


def asked_on(path: Path) -> list[str]:
    """Return the texts that a tape's requests asked with."""
    with Tape.open(path) as tape:
        bodies = [json.loads(exchange.request_body) for exchange in tape.exchanges]
    return [body["messages"][0]["content"].removeprefix("@say ") for body in bodies]


class Worker:
    """A thread that was there before any session, and runs the jobs of a queue."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[tuple[Callable[[], Any], queue.Queue[Any]] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def run(self, job: Callable[[], Any]) -> Any:
        """Have the thread run a job, and return what it returned or raise what it raised."""
        done: queue.Queue[Any] = queue.Queue()
        self._jobs.put((job, done))
        result = done.get(timeout=30)
        if isinstance(result, BaseException):
            raise result
        return result

    def stop(self) -> None:
        """End the thread."""
        self._jobs.put(None)
        self._thread.join(30)

    def _work(self) -> None:
        while (given := self._jobs.get()) is not None:
            job, done = given
            try:
                done.put(job())
            except BaseException as error:
                done.put(error)

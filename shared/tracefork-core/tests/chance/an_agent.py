"""An agent as people write them: randomness in every prompt, and no trace of tracefork."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import random
import secrets
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from os import urandom
from random import choice
from random import random as luck
from typing import Any
from uuid import uuid1
from uuid import uuid4 as new_id

import httpx2
import openai

CITIES = ["Oslo", "Lima", "Cairo", "Hanoi", "Quito"]


def prompt() -> str:
    drawn = [
        datetime.now(dt.UTC).isoformat(),
        time.time(),
        new_id(),
        uuid1(),
        choice(CITIES),
        luck(),
        random.gauss(0, 1),
        random.sample(CITIES, 3),
        random.Random().random(),
        random.SystemRandom().randint(0, 10**9),
        secrets.token_hex(4),
        os.urandom(4).hex(),
        urandom(4).hex(),
        next(tempfile._get_candidate_names()),  # type: ignore[attr-defined]
        uuid.uuid4().hex,
    ]
    return " ".join(map(str, drawn))


def messages() -> Any:
    return [{"role": "user", "content": prompt()}]


def in_turn(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", http_client=plain()) as client:
        for _ in range(2):
            client.chat.completions.create(model="m", messages=messages())


def in_tasks(url: str) -> None:
    async def main() -> None:
        http = httpx2.AsyncClient(verify=False)
        async with openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key="k", http_client=http
        ) as client:

            async def ask() -> None:
                await client.chat.completions.create(model="m", messages=messages())

            await asyncio.gather(*(ask() for _ in range(3)))
            await ask()

    asyncio.run(main())


def in_threads(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", http_client=plain()) as client:

        def ask() -> None:
            client.chat.completions.create(model="m", messages=messages())

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ask()


def plain() -> httpx2.Client:
    return httpx2.Client(verify=False)  # Loading certificates takes longer than all the rest.


WAYS: dict[str, Callable[[str], None]] = {
    "in turn": in_turn,
    "in tasks": in_tasks,
    "in threads": in_threads,
}

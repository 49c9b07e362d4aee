"""Jobs of child processes: each calls a provider with a real client over a real socket."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2


def question(text: str) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def ask(url: str, text: str) -> str:
    with httpx2.Client(verify=False, timeout=20) as client:
        answer = client.post(f"{url}/v1/chat/completions", json=question(text))
    if answer.status_code != 200:
        return answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


def ask_twice(url: str, text: str) -> list[str]:
    return [ask(url, text), ask(url, text)]


async def ask_async(client: httpx2.AsyncClient, url: str, text: str) -> str:
    answer = await client.post(f"{url}/v1/chat/completions", json=question(text))
    return str(answer.json()["choices"][0]["message"]["content"])


async def gather(url: str, text: str) -> list[str]:
    order: list[str] = []

    async def branch(client: httpx2.AsyncClient, name: str) -> None:
        order.append(f"{name} {await ask_async(client, url, text)}")

    async with httpx2.AsyncClient(verify=False, timeout=20) as client:
        await asyncio.gather(*(branch(client, f"{n}") for n in range(4)))
        return [*order, await ask_async(client, url, " ".join(order))]


def threads(url: str, text: str) -> list[str]:
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(lambda _: ask(url, text), range(3)))


def stream(url: str, text: str) -> list[str]:
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=2)
    messages = [{"role": "user", "content": text}]
    pieces = client.chat.completions.create(model="m", messages=messages, stream=True)
    return [piece.choices[0].delta.content or "" for piece in pieces if piece.choices]


async def stream_async(url: str, text: str) -> list[str]:
    import openai

    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k")
    messages = [{"role": "user", "content": text}]
    pieces = await client.chat.completions.create(model="m", messages=messages, stream=True)
    return [piece.choices[0].delta.content or "" async for piece in pieces if piece.choices]


def into_file(url: str, text: str, path: str) -> None:
    """Write the answer to a file, for a process that cannot return it."""
    Path(path).write_text(ask(url, text))


def when(url: str, text: str) -> str:
    """Make a request that depends on the clock and on a random value."""
    import uuid

    first = f"{text} at {time.time_ns()} {uuid.uuid4()}"
    return ask(url, first) + ask(url, f"{text} then {time.time()}") + f" {time.time_ns()}"


def draw(reads: int, draws: int) -> None:
    for _ in range(reads):
        time.time()
    for _ in range(draws):
        os.urandom(8)


def grandchild(url: str, text: str) -> str:
    command = [sys.executable, __file__, "ask", url, text]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def die_while_asking(url: str, text: str) -> None:
    with httpx2.Client(verify=False, timeout=20) as client:
        with client.stream(
            "POST", f"{url}/v1/chat/completions", json={**question(text), "stream": True}
        ) as answer:
            pieces = answer.iter_raw()
            next(pieces)
            os.kill(os.getpid(), 9)


JOBS = {job.__name__: job for job in (ask, ask_twice, threads, stream, when, grandchild)}
ASYNC_JOBS = {job.__name__: job for job in (gather, stream_async)}


def main(name: str, url: str, text: str) -> None:
    if name == "die_while_asking":
        die_while_asking(url, text)
    print(JOBS[name](url, text) if name in JOBS else asyncio.run(ASYNC_JOBS[name](url, text)))


if __name__ == "__main__":
    main(*sys.argv[1:])

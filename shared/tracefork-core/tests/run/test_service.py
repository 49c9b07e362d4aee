"""A FastAPI service under uvicorn records some of its requests, and leaves the others alone."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn
from fastapi import BackgroundTasks, FastAPI
from fastapi.responses import StreamingResponse

from tracefork_core import Tape, record, replay
from tracefork_testkit import ProviderServer

WAYS = ("task", "thread", "stream", "async-stream", "background")


def body_of(text: str) -> dict[str, object]:
    """Return a request to a model that answers with `text`."""
    return {"model": "m", "messages": [{"role": "user", "content": f"@say {text}"}]}


def service(url: str, folder: Path) -> FastAPI:
    """Return an app whose routes ask a model, each in its own way. `tape=` records a request."""
    app = FastAPI()
    path = f"{url}/v1/chat/completions"

    async def aask(text: str) -> str:
        async with httpx2.AsyncClient(verify=False, timeout=60) as client:
            answer = await client.post(path, json=body_of(text))
        said: str = answer.json()["choices"][0]["message"]["content"]
        return said

    def ask(text: str) -> str:
        with httpx2.Client(verify=False, timeout=60) as client:
            answer = client.post(path, json=body_of(text))
        said: str = answer.json()["choices"][0]["message"]["content"]
        return said

    @app.get("/task")
    async def task(text: str, tape: bool = False) -> str:
        if not tape:
            return await aask(text) + await aask("again")
        async with record(folder / f"{text}.tape"):
            return await aask(text) + await aask("again")

    @app.get("/thread")
    def thread(text: str, tape: bool = False) -> str:
        if not tape:
            return ask(text) + ask("again")
        with record(folder / f"{text}.tape"):
            return ask(text) + ask("again")

    @app.get("/stream")
    def stream(text: str, tape: bool = False) -> StreamingResponse:
        def steps() -> Iterator[str]:
            yield ask(text)
            yield ask("again")

        def recorded() -> Iterator[str]:
            with record(folder / f"{text}.tape"):
                yield from steps()

        return StreamingResponse(recorded() if tape else steps())

    @app.get("/async-stream")
    async def async_stream(text: str, tape: bool = False) -> StreamingResponse:
        async def steps() -> AsyncIterator[str]:
            yield await aask(text)
            yield await aask("again")

        async def recorded() -> AsyncIterator[str]:
            async with record(folder / f"{text}.tape"):
                async for step in steps():
                    yield step

        return StreamingResponse(recorded() if tape else steps())

    @app.get("/background")
    async def background(text: str, tasks: BackgroundTasks, tape: bool = False) -> str:
        async def work() -> None:
            if not tape:
                await aask(text) + await aask("again")
                return
            async with record(folder / f"{text}.tape"):
                await aask(text) + await aask("again")

        tasks.add_task(work)
        return f"{text}again"

    return app


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Serve an app with uvicorn in a thread of this process, and yield its URL."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(30)


@pytest.mark.parametrize("way", WAYS)
def test_fifty_requests_at_once_of_which_every_third_is_recorded(
    tmp_path: Path, provider: ProviderServer, way: str
) -> None:
    """All answers are right, and each tape holds its own request alone, which replays."""

    def get(n: int) -> str:
        asked = {"text": f"{way} {n}", "tape": "true" if n % 3 == 0 else "false"}
        with httpx2.Client(verify=False, timeout=60) as client:
            answer = client.get(f"{url}/{way}", params=asked).raise_for_status()
        return answer.text.strip('"')

    with served(service(provider.url, tmp_path)) as url, ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(get, range(50)))
    assert answers == [f"{way} {n}again" for n in range(50)]
    for n in range(0, 50, 3):
        with Tape.open(tmp_path / f"{way} {n}.tape") as tape:
            asked = [json.loads(exchange.request_body) for exchange in tape.exchanges]
            assert tape.receipt is not None
            assert tape.receipt.outcome == "ok"
        assert asked == [body_of(f"{way} {n}"), body_of("again")]


def test_a_replay_in_a_service_answers_its_own_request_only(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """The control is the tape: the same route, outside the replay, asks the provider."""
    app = service(provider.url, tmp_path)

    @app.get("/replayed")
    async def replayed(url: str) -> int:
        async with replay(tmp_path / "a.tape") as again:
            async with httpx2.AsyncClient(verify=False) as client:
                for text in ("a", "again"):
                    await client.post(f"{provider.url}/v1/chat/completions", json=body_of(text))
                inside = await client.get(url) if url else None
        assert inside is None
        return again.exchanges

    with served(app) as url, httpx2.Client(verify=False, timeout=60) as client:
        client.get(f"{url}/task", params={"text": "a", "tape": "true"}).raise_for_status()
        before = len(provider.requests)
        assert client.get(f"{url}/replayed", params={"url": ""}).json() == 2
        assert len(provider.requests) == before
        assert client.get(f"{url}/task", params={"text": "a"}).json() == "aagain"
        assert len(provider.requests) == before + 2

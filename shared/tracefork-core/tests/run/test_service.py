"""A FastAPI service under uvicorn records some of its requests, and leaves the others alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from fastapi import BackgroundTasks, FastAPI
from fastapi.responses import StreamingResponse

from tracefork_core import Tape, record, replay
from tracefork_testkit import ProviderServer

from ..service.serving import served
from .asking import aask, ask, asked_on

WAYS = ("task", "thread", "stream", "async-stream", "background")


def service(url: str, folder: Path) -> FastAPI:
    """Return an app whose routes ask a model, each in its own way. `tape=` records a request."""
    app = FastAPI()

    @app.get("/task")
    async def task(text: str, tape: bool = False) -> str:
        if not tape:
            return await aask(url, text) + await aask(url, "again")
        async with record(folder / f"{text}.tape"):
            return await aask(url, text) + await aask(url, "again")

    @app.get("/thread")
    def thread(text: str, tape: bool = False) -> str:
        if not tape:
            return ask(url, text) + ask(url, "again")
        with record(folder / f"{text}.tape"):
            return ask(url, text) + ask(url, "again")

    @app.get("/stream")
    def stream(text: str, tape: bool = False) -> StreamingResponse:
        def steps() -> Iterator[str]:
            yield ask(url, text)
            yield ask(url, "again")

        def recorded() -> Iterator[str]:
            with record(folder / f"{text}.tape"):
                yield from steps()

        return StreamingResponse(recorded() if tape else steps())

    @app.get("/async-stream")
    async def async_stream(text: str, tape: bool = False) -> StreamingResponse:
        async def steps() -> AsyncIterator[str]:
            yield await aask(url, text)
            yield await aask(url, "again")

        async def recorded() -> AsyncIterator[str]:
            async with record(folder / f"{text}.tape"):
                async for step in steps():
                    yield step

        return StreamingResponse(recorded() if tape else steps())

    @app.get("/background")
    async def background(text: str, tasks: BackgroundTasks, tape: bool = False) -> str:
        async def work() -> None:
            if not tape:
                await aask(url, text) + await aask(url, "again")
                return
            async with record(folder / f"{text}.tape"):
                await aask(url, text) + await aask(url, "again")

        tasks.add_task(work)
        return f"{text}again"

    return app


@pytest.mark.parametrize("way", WAYS)
def test_twenty_requests_at_once_of_which_every_third_is_recorded(
    tmp_path: Path, provider: ProviderServer, way: str
) -> None:
    """All answers are right, and each tape holds its own request alone, which replays."""

    def get(n: int) -> str:
        asked = {"text": f"{way} {n}", "tape": "true" if n % 3 == 0 else "false"}
        with httpx2.Client(verify=False, timeout=60) as client:
            answer = client.get(f"{url}/{way}", params=asked).raise_for_status()
        return answer.text.strip('"')

    with served(service(provider.url, tmp_path)) as url, ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(get, range(20)))
    assert answers == [f"{way} {n}again" for n in range(20)]
    for n in range(0, 20, 3):
        tape = tmp_path / f"{way} {n}.tape"
        assert asked_on(tape) == [f"{way} {n}", "again"]
        with Tape.open(tape) as opened:
            assert opened.receipt is not None
            assert opened.receipt.outcome == "ok"


def test_a_replay_in_a_service_answers_its_own_request_only(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """The control is the tape: the same route, outside the replay, asks the provider."""
    app = service(provider.url, tmp_path)

    @app.get("/replayed")
    async def replayed() -> int:
        async with replay(tmp_path / "a.tape") as again:
            for text in ("a", "again"):
                await aask(provider.url, text)
        return again.exchanges

    with served(app) as url, httpx2.Client(verify=False, timeout=60) as client:
        client.get(f"{url}/task", params={"text": "a", "tape": "true"}).raise_for_status()
        before = len(provider.requests)
        assert client.get(f"{url}/replayed").json() == 2
        assert len(provider.requests) == before
        assert client.get(f"{url}/task", params={"text": "a"}).json() == "aagain"
        assert len(provider.requests) == before + 2

"""Timeouts and timers of an agent: those that fired fire again, and the others do not."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from contextvars import Context, ContextVar
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import pytest

from tracefork_core import Tape, record, replay
from tracefork_testkit import Hold, ModelRequest, ProviderServer, Reply


def asking(url: str, text: str, **more: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    return {"url": f"{url}/v1/chat/completions", "json": body}


def ask(client: httpx2.Client, url: str, text: str) -> str:
    return str(client.post(**asking(url, text)).json()["choices"][0]["message"]["content"])


def test_a_timeout_that_did_not_fire_does_not_fire_in_a_slow_replay(
    tape: Path, provider: ProviderServer
) -> None:
    """A thread gets two seconds more than its timeout for what was in time when recorded."""

    def run(busy: float) -> None:
        ready = threading.Event()
        with httpx2.Client(verify=False) as client:

            def work() -> None:
                ask(client, provider.url, "hi")
                until = time.monotonic() + busy
                while time.monotonic() < until:
                    pass
                ready.set()

            worker = threading.Thread(target=work)
            worker.start()
            in_time = ready.wait(0.3)
            worker.join()
            ask(client, provider.url, f"in time: {in_time}")

    with record(tape):
        run(0)
    with replay(tape) as replaying:
        run(0.6)
    assert replaying.digest == replaying.tape.digest


def test_a_replay_does_not_wait_for_a_timer_of_a_closed_loop(
    tape: Path, provider: ProviderServer
) -> None:
    """The timer fired in the recording, but at replay its loop ends earlier."""

    def run(delay: float, busy: float) -> list[str]:
        came: list[str] = []
        enough = threading.Event()

        async def tick() -> None:
            asyncio.get_running_loop().call_later(delay, came.append, "tick")
            while not enough.is_set():  # noqa: ASYNC110 - an event of threads
                await asyncio.sleep(0)

        ticking = threading.Thread(target=asyncio.run, args=(tick(),))
        ticking.start()
        with httpx2.Client(verify=False) as client:
            ask(client, provider.url, "hi")
            until = time.monotonic() + busy
            while time.monotonic() < until and not came:
                pass
            enough.set()
            ticking.join()
            ask(client, provider.url, "still here?")
        return came

    with record(tape):
        assert run(0.1, busy=10) == ["tick"]
    began = time.monotonic()
    with replay(tape) as replaying:
        assert run(60, busy=0) == []
    assert time.monotonic() - began < 60
    assert replaying.digest == replaying.tape.digest


def test_a_timeout_that_began_expired_expires_again(tape: Path, provider: ProviderServer) -> None:
    """The recorded agent was too slow for a deadline, and a faster replay misses it too."""

    async def run(busy: float) -> list[str]:
        came: list[str] = []
        deadline = asyncio.get_running_loop().time() + 0.1
        async with httpx2.AsyncClient(verify=False) as client:

            async def first() -> None:
                await client.post(**asking(provider.url, "@slow 0.4"))
                came.append("an answer")

            answer = asyncio.create_task(first())
            await asyncio.sleep(0)
            until = time.monotonic() + busy
            while time.monotonic() < until:
                pass
            try:
                async with asyncio.timeout_at(deadline):
                    await client.post(**asking(provider.url, "@slow 60"))
            except TimeoutError:
                came.append("too late")
            await answer
            await client.post(**asking(provider.url, f"{came}"))
        return came

    with record(tape):
        recorded = asyncio.run(run(busy=0.2))
    assert recorded == ["too late", "an answer"]
    with replay(tape) as replaying:
        assert asyncio.run(run(busy=0)) == recorded
    assert replaying.digest == replaying.tape.digest


@pytest.mark.parametrize("lib", [httpx, httpx2])
def test_timeouts_inside_a_client_do_not_shift_those_of_the_agent(
    tape: Path, provider: ProviderServer, lib: Any
) -> None:
    """A client reads each piece of a body under a timeout, but does not run at replay."""

    async def run() -> list[str]:
        came: list[str] = []
        async with lib.AsyncClient(verify=False) as client:
            asked = asking(provider.url, "one two three", stream=True)
            async with client.stream("POST", **asked) as answer:
                came.extend([line async for line in answer.aiter_lines() if "[DONE]" in line])

            async def other() -> None:
                await client.post(**asking(provider.url, "@slow 0.4"))
                came.append("an answer")

            answering = asyncio.create_task(other())
            try:
                with anyio.fail_after(0.1):
                    await client.post(**asking(provider.url, "@slow 60"))
            except TimeoutError:
                came.append("too late")
            await answering
            await client.post(**asking(provider.url, f"{came}"))
        return came

    with record(tape):
        recorded = asyncio.run(run())
    assert recorded == ["data: [DONE]", "too late", "an answer"]
    with replay(tape) as replaying:
        assert asyncio.run(run()) == recorded
    assert replaying.digest == replaying.tape.digest
    with Tape.open(tape) as recorded_tape:
        timers = [reads for reads in recorded_tape.chance.reads if reads.source == "timer"]
    assert [(reads.site.rpartition(".")[2], reads.values[0]) for reads in timers] == [("run", 1)]


def test_a_timeout_that_cancelled_a_request_cancels_it_again(tape: Path) -> None:
    """At replay it fires although no answer is on its way."""
    hold = Hold(after_chunks=0)

    def script(request: ModelRequest) -> Reply:
        return Reply(text="x", hold=hold if request.last_user_text == "late" else None)

    async def run(url: str) -> list[str]:
        said = []
        async with httpx2.AsyncClient(verify=False) as client:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(client.post(**asking(url, "late")), 0.1)
                said.append("in time")
            said.append((await client.post(**asking(url, f"after {said}"))).text)
        return said

    with ProviderServer(script) as provider, record(tape):
        url = provider.url
        first = asyncio.run(run(url))
        hold.release()
    assert len(first) == 1
    with replay(tape) as replaying:
        assert asyncio.run(run(url)) == first
    assert replaying.digest == replaying.tape.digest
    with Tape.open(tape) as recorded:
        assert [exchange.end for exchange in recorded.exchanges] == ["cancelled", "eof"]


def test_a_timer_keeps_the_context_it_was_given(tape: Path) -> None:
    """An empty context counts too: its variables have their defaults when the timer fires."""
    here: ContextVar[str] = ContextVar("here", default="nothing")

    async def run() -> str:
        here.set("something")
        loop = asyncio.get_running_loop()
        fired = loop.create_future()
        loop.call_later(0.01, lambda: fired.set_result(here.get()), context=Context())
        return str(await fired)

    with record(tape):
        assert asyncio.run(run()) == "nothing"

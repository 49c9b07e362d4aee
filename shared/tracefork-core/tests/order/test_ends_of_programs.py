"""A subprocess that an agent waits for ends at the recorded point of the order."""

from __future__ import annotations

import asyncio
import ctypes.util
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tracefork_core import Tape, fork, record, replay
from tracefork_core.order import waits
from tracefork_testkit import ModelRequest, ProviderServer, Reply

PROGRAM = ["sleep", "0.4"]
"""At rest for as long as it runs: nothing that the system tells of it says that it goes on."""


def asking(url: str, text: str) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return {"url": f"{url}/v1/chat/completions", "json": body}


Way = Callable[[], Awaitable[None]]


async def beside_an_answer(url: str, way: Way) -> list[str]:
    """Return what came first: the end of a subprocess, or an answer that takes longer."""
    came = []
    async with httpx2.AsyncClient(verify=False, timeout=20) as client:

        async def other() -> None:
            await client.post(**asking(url, "@slow 1.5"))
            came.append("an answer")

        answering = asyncio.create_task(other())
        await way()
        came.append("a program")
        await answering
        await client.post(**asking(url, f"{came}"))
    return came


async def waited_for() -> None:
    process = await asyncio.create_subprocess_exec(*PROGRAM)
    await process.wait()


async def heard_out() -> None:
    process = await asyncio.create_subprocess_exec(*PROGRAM, stdout=subprocess.PIPE)
    await process.communicate()


async def by_anyio() -> None:
    await anyio.run_process(PROGRAM)


async def in_a_thread() -> None:
    await asyncio.to_thread(subprocess.run, PROGRAM, check=True)


async def with_a_limit() -> None:
    await asyncio.to_thread(subprocess.run, PROGRAM, check=True, timeout=20)


async def given_up() -> None:
    def run() -> None:
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(["sleep", "20"], check=True, timeout=0.4)

    await asyncio.to_thread(run)


@pytest.mark.parametrize(
    "way", [waited_for, heard_out, by_anyio, in_a_thread, with_a_limit, given_up]
)
def test_an_answer_recorded_after_a_subprocess_replays_after_it(
    tape: Path, provider: ProviderServer, way: Way
) -> None:
    """A replay has the answer at once, while the subprocess takes its time."""
    with record(tape):
        recorded = asyncio.run(beside_an_answer(provider.url, way))
    assert recorded == ["a program", "an answer"]
    with replay(tape) as replaying:
        assert asyncio.run(beside_an_answer(provider.url, way)) == recorded
    assert replaying.digest == replaying.tape.digest
    assert replaying.reordered == 0


def test_subprocesses_of_find_library_are_not_on_the_tape(tape: Path) -> None:
    """Python starts one to look for a library, unless it knows the library already."""
    with record(tape):
        ctypes.util.find_library("c")
    with Tape.open(tape) as recorded:
        assert [reads.site for reads in recorded.chance.reads if reads.source == "program"] == []


def test_subprocesses_of_an_anyio_imported_later_are_recorded(tape: Path) -> None:
    """Its processes have a class of their own."""
    code = f"""if True:
        import asyncio, sys, tracefork_core
        with tracefork_core.record({str(tape)!r}):
            assert "anyio" not in sys.modules
            import anyio
            asyncio.run(anyio.run_process(["true"]))
    """
    subprocess.run([sys.executable, "-c", code], check=True)
    with Tape.open(tape) as recorded:
        assert [r.values for r in recorded.chance.reads if r.source == "program"] == [[1, 0]]


def test_the_end_of_a_subprocess_is_recorded_once(tape: Path) -> None:
    """Also if the agent waits for it again, whether or not it has ended before the first wait."""

    def run(head_start: float) -> None:
        for _ in range(2):
            with subprocess.Popen(["true"], stdout=subprocess.PIPE) as program:
                until = time.monotonic() + head_start
                while time.monotonic() < until and program.poll() is None:
                    pass
                program.communicate()
                program.wait()

    for head_start in (0, 5):
        with record(tape, overwrite=True):
            run(head_start)
        with Tape.open(tape) as recorded:
            ends = [reads.values for reads in recorded.chance.reads if reads.source == "program"]
        assert ends == [[1, 0, 2, 1]]


def test_a_wait_for_a_subprocess_that_timed_out_times_out_again(
    tape: Path, provider: ProviderServer
) -> None:
    """The subprocess continues after the timeout, and the task waits for it again."""

    async def run() -> list[object]:
        came: list[object] = []
        process = await asyncio.create_subprocess_exec("sleep", "20")
        try:
            await asyncio.wait_for(process.wait(), 0.2)
        except TimeoutError:
            came.append("too late")
        process.kill()
        came.append(await process.wait())
        async with httpx2.AsyncClient(verify=False, timeout=20) as client:
            await client.post(**asking(provider.url, f"{came}"))
        return came

    with record(tape):
        recorded = asyncio.run(run())
    assert recorded == ["too late", -9]
    with replay(tape) as replaying:
        assert asyncio.run(run()) == recorded
    assert replaying.digest == replaying.tape.digest
    with Tape.open(tape) as on_tape:
        ends = [reads.values for reads in on_tape.chance.reads if reads.source == "program"]
    assert [len(values) for values in ends] == [2]  # The one that came; its number and its turn.


def test_a_subprocess_that_does_not_end_at_replay_does_not_block_it(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorded agent stopped it through a server, which gets no request at replay."""
    stop = tmp_path / "stop"
    code = f"while not __import__('os').path.exists({str(stop)!r}): __import__('time').sleep(0.01)"

    def script(request: ModelRequest) -> Reply:
        if request.last_user_text == "stop it":
            stop.touch()
        return Reply(text="ok")

    async def run(url: str) -> list[str]:
        came = []
        process = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", code)

        async def ending() -> None:
            await process.wait()
            came.append("ended")

        ended = asyncio.create_task(ending())
        async with httpx2.AsyncClient(verify=False, timeout=20) as client:
            await client.post(**asking(url, "stop it"))
            await asyncio.sleep(1.5)
            await client.post(**asking(url, "and now?"))
        if not ended.done():
            process.kill()
        await ended
        return came

    with ProviderServer(script) as provider, record(tape):
        url = provider.url
        assert asyncio.run(run(url)) == ["ended"]
    stop.unlink()
    monkeypatch.setattr(waits, "STALL_SECONDS", 0.3)
    with replay(tape) as replaying:
        assert asyncio.run(run(url)) == ["ended"]
    assert replaying.digest == replaying.tape.digest


def test_a_subprocess_ends_at_the_same_point_in_a_fork(
    tape: Path, provider: ProviderServer
) -> None:
    """What came before the fork point stays in the recorded order."""

    def run() -> list[str]:
        return asyncio.run(beside_an_answer(provider.url, waited_for))

    with record(tape):
        recorded = run()
    with fork(tape, at=1, replace="changed") as branch:
        assert run() == recorded == ["a program", "an answer"]
    with replay(branch.path) as replaying:
        assert run() == recorded
    assert replaying.digest == replaying.tape.digest

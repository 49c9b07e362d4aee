"""Processes of all kinds are part of the run that started them, and of its replay."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import Tape, record
from tracefork_testkit import ProviderServer

from ..forking import fork
from .conftest import AGENTS, SCRIPT, Proven, jobs

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def run(*words: str, **more: Any) -> str:
    done = subprocess.run(
        [sys.executable, *words], check=False, capture_output=True, text=True, **more
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_script(url: str) -> Any:
    return [run(SCRIPT, "ask", url, text) for text in ("same", "other", "same")]


def by_module(url: str) -> Any:
    return run("-m", "asking", "ask", url, "hello", cwd=AGENTS)


def with_a_bare_environment(url: str) -> Any:
    return run(SCRIPT, "ask", url, "hello", env={"PATH": os.environ["PATH"]})


def by_shell(url: str) -> Any:
    command = f'"{sys.executable}" "{SCRIPT}" ask {url} one'
    command = f"cat /dev/null | {command}; {command}"
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout


def from_asyncio(url: str) -> Any:
    async def one() -> bytes:
        child = await asyncio.create_subprocess_exec(
            sys.executable, SCRIPT, "ask", url, "same", stdout=subprocess.PIPE
        )
        return (await child.communicate())[0]

    async def both() -> list[bytes]:
        return list(await asyncio.gather(one(), one()))

    return asyncio.run(both())


def nested(url: str) -> Any:
    return run(SCRIPT, "grandchild", url, "hello")


def side_by_side(url: str) -> Any:
    words = [sys.executable, SCRIPT, "ask_twice", url, "same"]
    children = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return [child.communicate()[0] for child in children]


def with_tasks(url: str) -> Any:
    return run(SCRIPT, "gather", url, "same")


def with_threads(url: str) -> Any:
    return run(SCRIPT, "threads", url, "same")


def streaming(url: str) -> Any:
    return run(SCRIPT, "stream", url, "tell me"), run(SCRIPT, "stream_async", url, "tell me")


WAYS: dict[Callable[[str], Any], list[str]] = {
    by_script: ["main/asking.py.1", "main/asking.py.2", "main/asking.py.3"],
    by_module: ["main/asking.1"],
    with_a_bare_environment: ["main/asking.py.1"],
    by_shell: ["main/cat|asking.py.1", "main/cat|asking.py.1+2"],
    from_asyncio: ["main/one.1/asking.py.1", "main/one.2/asking.py.1"],
    nested: ["main/asking.py.1/asking.py.1"],
    side_by_side: ["main/asking.py.1"] * 2 + ["main/asking.py.2"] * 2,
    with_tasks: [f"main/asking.py.1/branch.{n}" for n in (1, 2, 3, 4)] + ["main/asking.py.1"],
    with_threads: [f"main/asking.py.1/lambda.{n}" for n in (1, 2, 3)],
    streaming: ["main/asking.py.1", "main/asking.py.2"],
}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_python_child_is_part_of_the_run(way: Callable[[str], Any], proven: Proven) -> None:
    """Its exchanges are on its parent's tape, on lanes below its parent's, and replay."""
    assert sorted(proven(way)) == sorted(WAYS[way])


def test_the_end_of_a_child_replays_before_later_exchanges(proven: Proven) -> None:
    """Replay waits for a child that computes after its last response, and for its exit."""
    code = """if True:
        import sys, time, asking
        asking.ask(sys.argv[1], "a child")
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            pass
    """

    async def run(url: str) -> list[str]:
        came = []

        async def other() -> None:
            async with httpx2.AsyncClient(verify=False, timeout=20) as client:
                await client.post(f"{url}/v1/chat/completions", json=jobs().question("@slow 2"))
            came.append("an answer")

        answering = asyncio.create_task(other())
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, url, cwd=AGENTS)
        await child.wait()
        came.append("a child ended")
        await answering
        return came

    assert sorted(proven(lambda url: asyncio.run(run(url)))) == ["main/other.1", "main/python.1"]


def by_multiprocessing(method: str, folder: Path) -> Callable[[str], Any]:
    def agent(url: str) -> Any:

        context: Any = multiprocessing.get_context(method)
        paths = [folder / "one", folder / "two"]
        job = jobs().into_file
        children = [context.Process(target=job, args=(url, "same", str(p))) for p in paths]
        for child in children:
            child.start()
        for child in children:
            child.join()
        return [path.read_text() for path in paths]

    return agent


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_process_of_multiprocessing_is_part_of_the_run(
    method: str, tmp_path: Path, proven: Proven
) -> None:
    """With each start method; its lane is named after its target and numbered by start."""
    lanes = proven(by_multiprocessing(method, tmp_path))
    assert sorted(lanes) == ["main/into_file.1", "main/into_file.2"]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_the_jobs_of_a_process_pool_have_lanes_of_their_own(method: str, proven: Proven) -> None:
    """Which worker runs a job is random, and must not matter."""

    def agent(url: str) -> Any:

        context: Any = multiprocessing.get_context(method)
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            done = [pool.submit(jobs().ask_twice, url, "same") for _ in range(4)]
            return [job.result() for job in done]

    assert sorted(proven(agent)) == sorted(f"main/ask_twice.{n}" for n in (1, 2, 3, 4) * 2)


def test_the_workers_of_a_multiprocessing_pool_have_no_order(proven: Proven) -> None:
    """They are on the tape and replay, but their lane promises no order."""

    def agent(url: str) -> Any:

        with multiprocessing.get_context("fork").Pool(2) as pool:
            answers = pool.starmap(jobs().ask, [(url, text) for text in "abcd"])
            pool.close()
            pool.join()
        return answers

    assert set(proven(agent)) == {"threads"}


def test_a_forked_child_is_part_of_the_run(proven: Proven, tmp_path: Path) -> None:
    """A bare `os.fork` joins too, and the parent makes more requests after it."""

    def agent(url: str) -> Any:
        child = fork(lambda: (tmp_path / "answer").write_text(jobs().ask(url, "same")))
        os.waitpid(child, 0)
        return (tmp_path / "answer").read_text(), jobs().ask(url, "same")

    assert proven(agent) == ["main/fork.1", "main"]


def test_a_session_without_processes_opens_no_socket(
    tape: Path, moody: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The socket opens for the first process and is removed with the session."""
    # A folder of its own, as other tests open doors too; a short one, as a socket's path must be.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)

        def doors() -> int:
            return len(list(Path(folder).glob("tracefork-*/run")))

        with record(tape):
            jobs().ask(moody.url, "hello")
            assert doors() == 0
            run("-c", "pass")
            assert doors() == 1
        assert doors() == 0


def test_the_step_that_started_a_process_is_the_step_of_its_exchanges(
    tape: Path, moody: ProviderServer
) -> None:
    """A child's requests belong to the step that was running at its start."""
    from tracefork_core.exchange.current import current_session, current_step

    with record(tape):
        session = current_session()
        assert session is not None
        step = session.begin_step("tool", "look", None, {})
        token = current_step.set(step)
        run(SCRIPT, "ask", moody.url, "hello")
        current_step.reset(token)
    with Tape.open(tape) as written:
        assert written.exchanges[0].aside.step == step
        assert written.exchanges[0].aside.caller == "asking.py:22"

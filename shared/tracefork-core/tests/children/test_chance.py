"""The clock reads and random values of a child process are on the tape of its parent."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import DivergenceError, record, replay, tool
from tracefork_testkit import ProviderServer

from ..forking import fork
from .conftest import SCRIPT, Proven, jobs

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def child(*words: str) -> str:
    return subprocess.run(
        [sys.executable, *words], check=False, stdout=subprocess.PIPE, text=True
    ).stdout


def test_the_clock_and_the_ids_of_a_child_replay(proven: Proven) -> None:
    """In requests with a time and a UUID, and also after the last request."""
    lanes = proven(lambda url: [child(SCRIPT, "when", url, "hello") for _ in range(2)])
    assert lanes == ["main/asking.py.1"] * 2 + ["main/asking.py.2"] * 2


def test_a_pool_job_draws_the_same_in_any_worker(proven: Proven) -> None:
    """Draws belong to the lane of the job, not to the process that runs it."""

    def agent(url: str) -> Any:
        context: Any = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            done = [pool.submit(jobs().when, url, "hello") for _ in range(4)]
            return [job.result() for job in done]

    assert sorted(proven(agent)) == sorted(f"main/when.{n}" for n in (1, 2, 3, 4) * 2)


def test_a_forked_child_draws_on_its_own_lane(proven: Proven, tmp_path: Path) -> None:
    """The same line draws different values in parent and child, and both replay."""

    def agent(url: str) -> Any:
        child = fork(lambda: (tmp_path / "answer").write_text(jobs().when(url, "hello")))
        os.waitpid(child, 0)
        return (tmp_path / "answer").read_text(), jobs().when(url, "hello")

    assert proven(agent) == ["main/fork.1"] * 2 + ["main"] * 2


def test_a_child_without_recorded_randomness_diverges(tape: Path, moody: ProviderServer) -> None:
    """The negative control: only the tape makes its values the same."""
    url = moody.url
    with record(tape, clock=False, entropy=False):
        child(SCRIPT, "when", url, "hello")
    with pytest.raises(DivergenceError, match="differs from recorded exchange 0"), replay(tape):
        child(SCRIPT, "when", url, "hello")


IDS = "import {first}; import random, uuid; print(uuid.uuid4(), random.random(), {last})"


@pytest.mark.parametrize("first", ["uuid", "email.message", "logging", "secrets, http.client"])
def test_the_first_draw_of_a_child_is_on_the_tape(first: str, tape: Path) -> None:
    """Whichever module is imported first; and two processes of one script draw differently."""
    code = IDS.format(first=first, last="__import__('datetime').datetime.now()")

    def agent() -> list[str]:
        return [child("-c", code), child("-c", code)]

    with record(tape):
        drawn = agent()
    with replay(tape) as again:
        assert agent() == drawn
    assert drawn[0] != drawn[1]
    assert again.clock_misses == again.entropy_misses == 0


def test_two_processes_on_one_lane_draw_different_ids(tape: Path) -> None:
    """A shell starts both with the same invitation; the parent separates them as they join."""
    command = f'"{sys.executable}" -c "import uuid; print(uuid.uuid4())"'

    @tool(effect="read")
    def look_up() -> str:
        return "found"

    def agent() -> list[str]:
        look_up()  # Of a tape without any exchange nothing is proven.
        done = subprocess.run(
            f"{command}; {command}", shell=True, check=True, capture_output=True, text=True
        )
        return done.stdout.split()

    with record(tape):
        first, second = agent()
    assert first != second
    with replay(tape):
        assert agent() == [first, second]


def test_a_child_that_draws_nothing_loads_nothing(tape: Path) -> None:
    """Neither the clock nor a connection, which most children do not need."""
    code = (
        "import sys; print([name for name in sys.modules if name in "
        "('asyncio', 'msgspec', 'time_machine', 'tracefork_core.session', 'tracefork_core.tape')])"
    )
    with record(tape):
        assert child("-c", code) == "[]\n"


def test_a_child_can_make_a_request_before_it_draws(tape: Path) -> None:
    """Loading the code to join triggers the first draw; neither may wait for the other."""
    code = (
        "from tracefork_core.exchange.current import current_session as here; here().check();"
        "import uuid; print(uuid.uuid4())"
    )
    with record(tape):
        drawn = child("-c", code)
    with replay(tape):
        assert child("-c", code) == drawn != ""

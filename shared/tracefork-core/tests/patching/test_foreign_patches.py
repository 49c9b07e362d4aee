"""Sessions live with functions that others put in place of those that sessions patch.

`TRACEFORK_EXAMPLES=3000` runs that many cases. Case N is the same on every machine.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest

from tracefork_core import Tape, record, replay
from tracefork_core.patching import real_clock
from tracefork_testkit import ProviderServer

PROGRAM = Path(__file__).with_name("interleavings.py")
CASES = int(os.environ.get("TRACEFORK_EXAMPLES", "16"))
BATCH = 100
"""For each process."""


@pytest.mark.parametrize("first", range(0, CASES, min(BATCH, max(CASES // 2, 1))))
def test_foreign_patches_begin_and_end_in_any_order(first: int, tmp_path: Path) -> None:
    """No crash, no wrong replay, and what is patched is the original afterwards.

    Every second process has a clock replaced before its first session, which loads time-machine.
    """
    step = min(BATCH, max(CASES // 2, 1))
    seed = 1000 * first + (first // step) % 2
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(PROGRAM), str(seed), str(step)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30 + 5 * step,
        check=False,
    )
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{printed[-1]}\n{done.stderr}"
    assert not [line for line in printed if line.get("wrong")], printed[-3:]
    assert len(printed[-1]["places"]) > 50, "what sessions patch was not found"


def ask(http: httpx2.Client, url: str) -> None:
    """Send the time, as two clocks tell it."""
    now = datetime.datetime.now(datetime.UTC).isoformat()
    http.post(f"{url}/echo", json=[time.time(), now])


@pytest.mark.parametrize("clock", ["time.time", "datetime.datetime"])
def test_a_replaced_clock_is_the_programs_own_and_the_others_are_recorded(
    clock: str, tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The receipt says which is not on the tape."""
    kind: Any = type("datetime", (datetime.datetime,), {}) if "datetime" in clock else None
    with mock.patch(clock, kind or (lambda: 17.5)):
        with record(tape) as run:
            ask(http, provider.url)
        with replay(tape) as again:
            ask(http, provider.url)
    assert again.digest == run.digest
    assert run.receipt is not None
    assert run.receipt.replaced == [clock]
    with record(tape, overwrite=True) as unreplaced:
        pass
    assert unreplaced.receipt is not None
    assert unreplaced.receipt.replaced == []


def test_a_source_of_randomness_that_is_replaced_is_in_the_receipt(tape: Path) -> None:
    """It was so at the beginning, or at the end."""
    with mock.patch("os.urandom", bytes):
        with record(tape) as run:
            patch = mock.patch("random.random", return_value=0.5)
            patch.start()
    patch.stop()
    assert run.receipt is not None
    assert run.receipt.replaced == ["os.urandom", "random.random"]


def test_a_name_that_was_mocked_in_one_session_is_patched_in_the_next(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """A session looks at modules it knows again: `os.urandom` is on the second tape."""

    def draw() -> None:
        http.post(f"{provider.url}/echo", json=os.urandom(8).hex())

    with mock.patch("os.urandom", bytes):
        with record(tape):
            draw()
    with record(tape, overwrite=True) as run:
        draw()
    with replay(tape) as again:
        draw()
    assert again.digest == run.digest


@pytest.mark.parametrize(
    "place",
    ["threading.Thread", "subprocess.Popen", "httpx2.Client", "requests.adapters.HTTPAdapter"],
)
def test_a_mock_in_place_of_a_class_is_left_alone(
    place: str, tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """And the session ends in order."""
    thread, popen = threading.Thread.start, subprocess.Popen.__init__
    with mock.patch(place) as other:
        before = dir(other)
        with record(tape) as run:
            pass
        assert dir(other) == before
    assert run.receipt is not None
    assert (threading.Thread.start, subprocess.Popen.__init__) == (thread, popen)
    with record(tape, overwrite=True) as run:
        ask(http, provider.url)
    with Tape.open(tape) as recorded:
        assert len(recorded.exchanges) == 1


def test_a_tape_made_inside_of_mocks_has_its_own_times(tape: Path) -> None:
    """When it began does not come from a mock, which may not even be a number."""
    before = real_clock.time_ns()
    with mock.patch("time.time_ns"), mock.patch("time.strftime"), mock.patch("time.monotonic"):
        with record(tape):
            pass
    with Tape.open(tape) as recorded:
        assert recorded.environment is not None
        assert before <= recorded.environment.started <= real_clock.time_ns()


def test_a_mock_that_outlives_its_session_puts_no_patch_back_for_good(tape: Path) -> None:
    """What a mock saved inside of a session is ours; the next session takes it away."""
    original = threading.Condition.wait
    other = mock.patch.object(threading.Condition, "wait", mock.Mock())
    with record(tape):
        other.start()
    other.stop()
    with record(tape, overwrite=True):
        pass
    assert threading.Condition.wait is original

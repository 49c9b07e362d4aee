"""What all tests of core share: a place for a tape, a client, and an end to waiting."""

from __future__ import annotations

import faulthandler
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import httpx2
import pytest

PATIENCE = 110


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """Name a tape that does not exist yet."""
    return tmp_path / "run.tape"


@pytest.fixture
def http() -> Iterator[httpx2.Client]:
    """Open a client of httpx2 that loads no certificates."""
    with httpx2.Client(verify=False, timeout=20) as client:
        yield client


@pytest.fixture(autouse=True)
def _nothing_hangs() -> Iterator[None]:
    """Fail a test that takes two minutes, with the stack of every thread."""

    def give_up(number: int, frame: FrameType | None) -> None:
        faulthandler.dump_traceback(file=sys.__stderr__ or sys.stderr)
        pytest.fail(f"still running after {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)

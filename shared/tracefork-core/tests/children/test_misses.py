"""Draws of child processes that the tape does not hold are counted once, by their source."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import record, replay

from ..forking import fork
from .conftest import jobs

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def by_multiprocessing(method: str) -> Callable[[int, int], None]:
    def drawn(reads: int, draws: int) -> None:
        context: Any = multiprocessing.get_context(method)
        child = context.Process(target=jobs().draw, args=(reads, draws))
        child.start()
        child.join()
        assert child.exitcode == 0

    return drawn


def by_fork(reads: int, draws: int) -> None:
    child = fork(lambda: jobs().draw(reads, draws))
    assert os.waitpid(child, 0)[1] == 0


WAYS = {
    "os.fork": by_fork,
    **{method: by_multiprocessing(method) for method in ("fork", "forkserver", "spawn")},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_miss_of_a_child_is_counted_once_by_its_source(
    way: Callable[[int, int], None], tape: Path
) -> None:
    """However the child ends; a child that repeats its recorded draws misses nothing."""
    with record(tape):
        way(1, 1)
    with replay(tape) as same:
        way(1, 1)
    with replay(tape) as more:
        way(4, 3)
    assert (same.clock_misses, same.entropy_misses) == (0, 0)
    assert (more.clock_misses, more.entropy_misses) == (3, 2)

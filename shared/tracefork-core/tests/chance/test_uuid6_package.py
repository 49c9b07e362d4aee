"""Ids of the package uuid6, which never makes one before the last of the process."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import uuid6
from uuid6 import uuid7

from tracefork_core import record, replay

IDS: dict[str, Callable[[], object]] = {
    "uuid6": lambda: uuid6.uuid6(),  # noqa: PLW0108 - looked up when it is called
    "uuid7": lambda: uuid6.uuid7(),  # noqa: PLW0108
    "uuid8": lambda: uuid6.uuid8(),  # noqa: PLW0108
    "uuid7, bound early": lambda: uuid7(),  # noqa: PLW0108
}


@pytest.mark.parametrize("make", IDS.values(), ids=IDS.keys())
def test_an_id_replays_although_later_ids_were_made(tape: Path, make: Callable[[], object]) -> None:
    """Three ids replay, with ten others made in between."""
    with record(tape):
        first = [make() for _ in range(3)]
    for _ in range(10):
        make()
    with replay(tape) as run:
        assert [make() for _ in range(3)] == first
    assert (run.entropy_misses, run.clock_misses) == (0, 0)
    assert len(set(first)) == 3


def test_a_thread_that_makes_ids_does_not_shift_those_of_the_agent(tape: Path) -> None:
    """However many an exporter makes in the background."""

    def agent(noise: int) -> list[object]:
        thread = threading.Thread(target=lambda: [uuid7() for _ in range(noise)])
        thread.start()
        thread.join()
        return [uuid7() for _ in range(3)]

    with record(tape):
        first = agent(3)
    with replay(tape):
        assert agent(5000) == first


def test_the_package_imported_inside_is_restored(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ids replay; afterwards its functions are its own."""
    monkeypatch.delitem(sys.modules, "uuid6")
    with record(tape):
        loaded = importlib.import_module("uuid6")
        first = [loaded.uuid7() for _ in range(3)]
    own = loaded.uuid7
    with replay(tape):
        assert loaded.uuid7 is not own
        assert [loaded.uuid7() for _ in range(3)] == first
    assert loaded.uuid7 is own
    assert "tracefork" not in own.__code__.co_filename

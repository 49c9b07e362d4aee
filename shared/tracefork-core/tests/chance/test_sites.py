"""A call site is named after its function: an edit elsewhere does not rename it."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType

import pytest

from tracefork_core import Tape, record, replay
from tracefork_core.chance.draws import observers

SOURCE = """
import os, time
class Agent:
    def plan(self):
        return [time.time_ns(), os.urandom(4), self.ask(), (lambda: time.time_ns())()]
    def ask(self):
        return [time.time_ns() for _ in range(2)]
"""


def loaded(source: str) -> list[object]:
    module = ModuleType("agent")
    exec(source, vars(module))
    make = module.Agent if "class Agent" in source else module.Bot
    plan: list[object] = make().plan()
    return plan


def test_code_added_above_a_call_site_does_not_rename_it(tape: Path) -> None:
    """A tape replays after an edit that leaves the functions which draw unchanged."""
    with record(tape):
        first = loaded(SOURCE)
    edited = f"# a comment\nimport time\n\n\ndef more():\n    return time.time()\n\n{SOURCE}"
    with replay(tape) as run:
        assert loaded(edited) == first
    assert (run.clock_misses, run.entropy_misses) == (0, 0)


def test_a_renamed_class_is_another_call_site(tape: Path) -> None:
    """Negative control: the tape has no values for it."""
    with record(tape):
        loaded(SOURCE)
    with replay(tape) as run:
        loaded(SOURCE.replace("Agent", "Bot"))
    assert run.clock_misses > 0
    assert run.entropy_misses == 1


def test_a_call_site_is_a_module_and_a_qualified_name(tape: Path) -> None:
    """Comprehensions belong to their function; `uuid` draws for its caller."""
    with record(tape):
        loaded(SOURCE)
        uuid.uuid1()
    with Tape.open(tape) as opened:
        sites = {(reads.source, reads.site) for reads in opened.draws}
    here = f"{__name__}:test_a_call_site_is_a_module_and_a_qualified_name"
    assert {("clock", "agent:Agent.plan"), ("entropy", "agent:Agent.plan")} <= sites
    assert ("clock", "agent:Agent.plan.<locals>.<lambda>") in sites
    assert ("clock", "agent:Agent.ask") in sites
    assert not any("comp>" in site for _, site in sites)
    assert {("clock", here), ("entropy", here)} <= sites
    assert not any(site.startswith("uuid:") for _, site in sites)


@pytest.fixture
def seen() -> Iterator[list[tuple[str, object, str]]]:
    """Observe every draw, with the name of the function that made it."""
    found: list[tuple[str, object, str]] = []

    def observe(source: str, value: object, frame: FrameType | None) -> None:
        assert frame is not None
        found.append((source, value, frame.f_code.co_name))

    observers.append(observe)
    yield found
    observers.remove(observe)


def test_observers_see_each_draw(tape: Path, seen: list[tuple[str, object, str]]) -> None:
    """They get the source, the value and the frame, only in sessions."""

    def drawn() -> list[tuple[str, object, str]]:
        return [
            ("clock", time.time_ns(), "drawn"),
            ("entropy", os.urandom(5), "drawn"),
            ("entropy", uuid.uuid4(), "drawn"),
            ("random", random.random(), "drawn"),
        ]

    drawn()
    assert seen == []
    with record(tape) as run:
        expected = drawn()
        run.nondet.urandom(3)
    assert [source for source, *_ in seen] == ["clock", "entropy", "entropy", "random", "entropy"]
    assert [seen[0], seen[1], seen[3]] == [expected[0], expected[1], expected[3]]
    assert seen[2][2] == "drawn"
    with replay(tape):
        assert drawn() == expected

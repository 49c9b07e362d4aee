"""An edited agent runs again, and pays only for what it asks differently."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core import UsageError, WriteError, record, replay, rerun, tool
from tracefork_core.exchange.contract import Request
from tracefork_core.tape import Exchange

from .agent import WAYS, Moody, ask, run

paid: list[int] = []


def chat(url: str, *questions: str) -> list[str]:
    """Ask each question with all earlier answers before it."""
    answers: list[str] = []
    for question in questions:
        answers.append(ask(url, f"{question} after {' and '.join(answers)}"))
    return answers


@tool(effect="write")
def pay(euros: int) -> str:
    paid.append(euros)
    return f"paid {euros}"


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_that_did_not_change_asks_for_nothing(
    tape: Path, url: str, moody: Moody, way: str
) -> None:
    """All of it is on the branch, which replays by itself."""
    with record(tape):
        said = run(url, way)
    with rerun(tape) as again:
        assert run(url, way) == said
    assert (again.replayed, again.given, again.live) == (len(said), 0, 0)
    assert again.path == tape.with_name(f"{tape.stem}.rerun.tape")
    assert len(moody.asked) == len(said)
    with replay(again.path):
        assert run(url, way) == said


def test_only_what_is_asked_differently_is_live(tape: Path, url: str, moody: Moody) -> None:
    """The recorded exchange whose place a live call takes is handed to `before_live`."""
    with record(tape):
        first = chat(url, "a", "b", "c")
    asked: list[tuple[int | None, str]] = []

    def note(request: Request, place: Exchange | None) -> None:
        asked.append((place.n if place else None, request.method))

    with rerun(tape, before_live=note) as again:
        second = chat(url, "a", "B", "c")
    assert second[0] == first[0]
    assert second[1:] != first[1:]
    assert (again.replayed, again.live) == (1, 2)
    assert asked == [(1, "POST"), (2, "POST")]
    with replay(again.path):
        assert chat(url, "a", "B", "c") == second


def test_a_tool_is_not_repeated(tape: Path) -> None:
    """An equal call is answered from the tape. Another call is a write, which is refused."""
    paid.clear()
    with record(tape):
        pay(5)
    with rerun(tape):
        assert pay(5) == "paid 5"
    with pytest.raises(WriteError, match="tool:pay"), rerun(tape, to=tape.with_name("b.tape")):
        pay(6)
    assert paid == [5]
    with rerun(tape, writes="allow", to=tape.with_name("c.tape")):
        pay(6)
        pay(5)
        pay(5)  # The tape holds one: the second is another call.
    assert paid == [5, 6, 5]


def test_an_error_before_a_live_call_ends_the_run(tape: Path, url: str, moody: Moody) -> None:
    """Nothing is sent, and what it is about is the error of the block."""
    with record(tape):
        run(url)

    def refuse(request: Request, place: Exchange | None) -> None:
        raise UsageError("tracefork: not today")

    before = len(moody.asked)
    with pytest.raises(UsageError, match="not today"), rerun(tape, before_live=refuse):
        chat(url, "something", "else")
    with rerun(tape, calls=0, to=tape.with_name("none.tape")) as again:
        chat(url, "something", "else")
    assert (again.overspent, again.live) == (True, 0)
    assert len(moody.asked) == before


def test_a_branch_says_that_it_was_run_again(tape: Path, url: str) -> None:
    """It has the tape as its parent, from the first exchange on."""
    with record(tape):
        run(url)
    with rerun(tape) as again:
        run(url)
    with tracefork.Tape.open(again.path) as branch:
        assert branch.branch is not None
        assert branch.branch.is_rerun
        assert branch.origin is not None
        assert branch.origin.at == 0

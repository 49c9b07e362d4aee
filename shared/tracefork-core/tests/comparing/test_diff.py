"""`tracefork_core.diff` finds each difference once, of the right kind, where it began."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracefork_core as tracefork
from tracefork_core import Comparison, ReplayError, UsageError

from .runs import Item, Turn, chat, conversation, singles, write

COUNT, EXAMPLES = (10_000, 5) if "TRACEFORK_FUZZ" in os.environ else (40, 5)
TURNS: list[Turn] = [
    *(("search", {"q": f"city {i}", "date": "2026-12-01"}, f"found {i}") for i in range(6)),
    "Booked.",
]
Told = tuple[str, int | None, int | None, str]
"""A finding: its kind, both numbers, its pointer."""


def compared(
    tape: Path, first: Sequence[Item], second: Sequence[Item], **options: Any
) -> Comparison:
    """Write two runs, and compare them."""
    one, other = (tape.with_name(name) for name in ("first.tape", "second.tape"))
    return tracefork.diff(write(one, first), write(other, second), **options)


def told(found: Comparison) -> list[Told]:
    """Return the findings in short."""
    return [(one.kind, one.first, one.second, one.pointer) for one in found.findings]


def test_runs_that_differ_in_clock_and_ids_are_the_same(tape: Path) -> None:
    """They say so, and --strict finds them."""
    found = compared(tape, conversation(TURNS), conversation(TURNS))
    assert told(found) == []
    assert not found
    assert found.kinds == {"exact": 13}
    assert found.incidental == 7
    strict = tracefork.diff(
        tape.with_name("first.tape"), tape.with_name("second.tape"), strict=True
    )
    assert strict.kinds["output differs"] + strict.kinds["input differs"] == 7


def test_lanes_may_take_turns_in_any_order(tape: Path) -> None:
    """The order in which tasks got their turns is chance; it counts with `strict`."""
    items = singles(24)
    by_lane = sorted(items, key=lambda item: item.lane)
    assert told(compared(tape, items, by_lane)) == []
    assert compared(tape, items, by_lane, strict=True)


def _changed(item: Item, **changes: Any) -> Item:
    return item._replace(asked={**item.asked, **changes})


def _answered(item: Item, text: str) -> Item:
    choice = {"index": 0, "finish_reason": "stop", "message": _said(text)}
    return item._replace(answered={**item.answered, "choices": [choice]})


KINDS = ("insert", "delete", "setting", "words", "answer", "error")


def planted(kind: str, items: list[Item], at: int) -> tuple[Sequence[Item], Told]:
    """Return a run with one change, and the one finding that it has to be."""
    one, rest = items[at], items[at + 1 :]
    asked = {"messages": [{"role": "user", "content": "What is it?"}]}
    refused = one._replace(status=429, answered={"error": {"message": "slow down"}})
    changed: list[Item]
    expected: Told
    changed, expected = {
        "insert": ([singles(COUNT + 1)[-1], one], ("extra", None, at, "")),
        "delete": ([], ("missing", at, None, "")),
        "setting": ([_changed(one, temperature=1)], ("input differs", at, at, "/temperature")),
        "words": ([_changed(one, **asked)], ("input differs", at, at, "/messages/0/content")),
        "answer": ([_answered(one, "It is not.")], ("output differs", at, at, "answer")),
        "error": ([refused], ("error differs", at, at, "error")),
    }[kind]
    return [*items[:at], *changed, *rest], expected


def any_place(test: Callable[..., None]) -> Callable[..., None]:
    """Try a test at a few places of a run."""
    slow = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    patient = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=slow)
    found: Callable[..., None] = patient(given(at=st.integers(8, COUNT - 9))(test))
    return found


@pytest.mark.parametrize("kind", KINDS)
@any_place
def test_one_planted_change_is_one_finding(kind: str, tape: Path, at: int) -> None:
    """It has the right kind and pointer, wherever it is, and nothing else is found."""
    items = singles(COUNT)
    other, expected = planted(kind, items, at)
    assert told(compared(tape, items, other)) == [expected]


@any_place
def test_two_exchanges_that_changed_places_are_one_finding(tape: Path, at: int) -> None:
    """Either of the two may be said to have moved."""
    items = singles(COUNT)
    other = list(items)
    other[at], other[at + 4] = items[at + 4], items[at]  # Of the same lane.
    (moved,) = compared(tape, items, other).findings
    assert (moved.kind, moved.pointer, moved.is_moved) == ("operation differs", "order", True)
    assert {moved.first, moved.second} == {at, at + 4}


def test_another_answer_is_not_found_again_in_each_later_question(tape: Path) -> None:
    """The history of every later question differs, and that is the one difference."""
    found = compared(tape, conversation(TURNS), conversation([*TURNS[:-1], "Sorry."]))
    assert told(found) == [("output differs", 12, 12, "answer")]
    other = [*TURNS[:2], ("search", {"q": "city 2", "date": "2026-12-02"}, "found 2"), *TURNS[3:]]
    found = compared(tape, conversation(TURNS), conversation(other))
    assert told(found) == [
        ("output differs", 4, 4, "call of search/date"),
        ("input differs", 5, 5, "/date"),
    ]
    assert found.after_other == 4


def test_an_answer_inside_a_later_prompt_is_not_found_again(tape: Path) -> None:
    """Programs build prompts from answers. Where other words differ too, the prompt is another."""

    def run(rule: str, prompt: str) -> list[Item]:
        first = chat("main", [{"role": "user", "content": "Which rule?"}], _said(rule))
        asked = [{"role": "user", "content": prompt.format(rule)}]
        return [first, chat("main", asked, _said("refuse"))]

    before = run("Returns: 14 days.", "Refund? {} It broke.")
    found = compared(tape, before, run("Damage: 30 days.", "Refund? {} It broke."))
    assert told(found) == [("output differs", 0, 0, "answer")]
    assert found.after_other == 1
    found = compared(tape, before, run("Damage: 30 days.", "Refuse? {} It broke."))
    assert told(found)[1:] == [("input differs", 1, 1, "/messages/0/content")]


def _said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def test_another_system_prompt_is_one_finding(tape: Path) -> None:
    """It is in each question of the agent; so are tools and settings."""
    found = compared(tape, conversation(TURNS), conversation(TURNS, system="Be kind."))
    assert told(found) == [("input differs", 0, 0, "/messages/0/content")]
    (section,) = found.findings[0].sections
    assert (section.name, section.before, section.after) == (
        "system prompt",
        "Be brief.",
        "Be kind.",
    )
    found = compared(tape, conversation(TURNS), conversation(TURNS, temperature=1))
    assert told(found) == [("input differs", 0, 0, "/temperature")]


def test_an_additional_turn_shifts_nothing(tape: Path) -> None:
    """The call that led to it is another answer; the rest is the same, after another history."""
    more: Turn = ("search", {"q": "again", "date": "2026-12-01"}, "found more")
    found = compared(tape, conversation(TURNS), conversation([*TURNS[:3], more, *TURNS[3:]]))
    assert [one.kind for one in found.findings] == ["output differs", "extra", "extra"]
    assert found.kinds["exact"] == 12


def test_another_tool_is_another_operation(tape: Path) -> None:
    """The result that the model reads then is no finding of its own."""
    other: list[Turn] = [*TURNS[:2], ("book", {"q": "city 2"}, "booked"), *TURNS[3:]]
    found = compared(tape, conversation(TURNS), conversation(other))
    assert told(found) == [
        ("output differs", 4, 4, "call of search"),
        ("operation differs", 5, 5, "operation"),
    ]


def test_an_additional_task_does_not_rename_the_others(tape: Path) -> None:
    """Lanes are numbered, so that all later ones have another name."""
    runs = [conversation([f"I am {i}.", "Done."], lane=f"main/{i}") for i in range(6)]
    new = conversation(["I am new.", "Done."], lane="main/0")
    later = [item._replace(lane=f"main/{i + 1}") for i, items in enumerate(runs) for item in items]
    found = compared(tape, [item for items in runs for item in items], [*new, *later])
    assert [one.kind for one in found.findings] == ["extra", "extra"]
    assert {one.lane for one in found.findings} <= {"main/0", "main/6"}


def test_a_run_matches_another_that_asked_the_same(tape: Path) -> None:
    """In any order of lanes, and with other answers; another question is named, with its place."""
    items = singles(24)
    expected, made = (tape.with_name(name) for name in ("expected.tape", "made.tape"))
    write(expected, items)
    other = sorted(items, key=lambda item: item.lane)
    write(made, [_answered(other[0], "It is not."), *other[1:]])
    tracefork.assert_matches(made, expected)
    write(made, [_changed(items[0], temperature=1), *items[1:]])
    with pytest.raises(AssertionError, match=r"at exchange 0 \(chat: input differs /temperature\)"):
        tracefork.assert_matches(made, expected)
    with pytest.raises(AssertionError, match="missing"):
        tracefork.assert_matches(write(made, items[1:]), expected)


def test_nothing_against_nothing_is_no_proof(tape: Path) -> None:
    """Two tapes without an exchange are not called the same."""
    with pytest.raises(ReplayError, match="nothing to compare"):
        compared(tape, [], [])
    assert [one.kind for one in compared(tape, [], singles(2)).findings] == ["extra", "extra"]


def test_one_tape_has_to_be_a_branch(tape: Path) -> None:
    """Else the error says to name a second one."""
    with pytest.raises(UsageError, match=r"not a branch.*OTHER\.tape"):
        tracefork.diff(write(tape, singles(2)))

"""Text that differs is traced to what was drawn: by its value first, by its looks last."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tracefork_core.explaining.causes import UNKNOWN, Cause, Run, causes
from tracefork_core.explaining.draws import Draw

THEN, NOW = 1_795_327_743_587_039_851, 1_795_413_000_000_000_000
ONE, OTHER = bytes(range(16)), bytes(range(100, 116))


def moment(nanoseconds: int, spelled: str) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).strftime(spelled)


def drawn(source: str, *values: object, site: str | None = "agent.py:4") -> tuple[Run, Run]:
    """Return two runs that drew one value each at the same line."""
    one, other = (Run([Draw(source, site, str(value))]) for value in values)
    return one, other


def only(
    before: str, after: str, runs: tuple[Run, Run], answers: tuple[str, str] = ("", "")
) -> Cause:
    """Return the one cause of a difference."""
    (cause,) = causes(before, after, runs, answers, 0)
    return cause


SPELLINGS = ["%Y-%m-%d", "%A", "%B %d, %Y", "%d.%m.%Y", "%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y%m%d"]


@pytest.mark.parametrize("spelled", SPELLINGS)
def test_a_read_of_the_clock_is_found_in_its_usual_spellings(spelled: str) -> None:
    """Dates, times of day and weekdays are traced to the line that read the clock."""
    pair = f"({moment(THEN, spelled)})", f"({moment(NOW, spelled)})"
    found = only(*pair, drawn("clock", THEN, NOW))
    assert found == Cause("a read of the clock", "agent.py:4", on_tape=True)


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_a_time_as_a_number_is_found(unit: int) -> None:
    """Seconds since the epoch, milliseconds, microseconds and nanoseconds."""
    found = only(f"at={THEN // unit}", f"at={NOW // unit}", drawn("clock", THEN, NOW))
    assert found.site == "agent.py:4"


@pytest.mark.parametrize(
    "spell",
    [
        bytes.hex,
        lambda data: str(uuid.UUID(bytes=data, version=4)),
        lambda data: uuid.UUID(bytes=data, version=4).hex,
        lambda data: base64.b64encode(data).decode(),
        lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
    ],
)
def test_bytes_are_found_as_ids_and_tokens(spell: Callable[[bytes], str]) -> None:
    """Entropy shows as a UUID, hexadecimal or base64."""
    found = only(
        f"id-{spell(ONE)}.", f"id-{spell(OTHER)}.", drawn("entropy", ONE.hex(), OTHER.hex())
    )
    assert (found.site, found.on_tape) == ("agent.py:4", True)


def test_a_value_that_another_line_drew_in_the_other_run_is_no_cause() -> None:
    """Both runs must have drawn it at the same line: chance meetings explain nothing."""
    one, _ = drawn("clock", THEN, NOW)
    _, other = drawn("clock", THEN, NOW, site="other.py:9")
    found = only("refund it by Friday", "refund it on Monday", (one, other))
    assert (found.what, found.on_tape) == (UNKNOWN, False)


def test_a_native_function_brings_its_fix() -> None:
    """What was drawn by a function of the table is outside, with what to use instead."""
    runs = drawn("uuid_utils.uuid4", uuid.UUID(bytes=ONE), uuid.UUID(bytes=OTHER))
    found = only(f"<{uuid.UUID(bytes=ONE)}>", f"<{uuid.UUID(bytes=OTHER)}>", runs)
    assert (found.what, found.site, found.on_tape) == ("uuid_utils.uuid4()", "agent.py:4", False)
    assert "uuid.uuid4()" in found.fix


UNSEEN = {
    "a UUID that was drawn unseen": (str(uuid.UUID(bytes=ONE)), str(uuid.UUID(bytes=OTHER))),
    "a memory address": ("<A at 0x7f4e0f7cbbd0>", "<A at 0x7f4ccb934390>"),
    "a number drawn unseen, or measured": ("36350.364661206", "36353.861363124"),
    "a token that was drawn unseen": ("tok_9fK2mQ7xLp4Zt1", "tok_Bw8Rn3Vc6Yh0Gd"),
}


@pytest.mark.parametrize("what", UNSEEN)
def test_what_nobody_saw_goes_by_its_looks(what: str) -> None:
    """Without a draw the look of both values decides, it is outside, and there is a fix."""
    found = only(*UNSEEN[what], (Run(), Run()))
    assert (found.what, found.site, found.on_tape, bool(found.fix)) == (what, None, False, True)


def test_an_address_may_be_a_number() -> None:
    """`id()` is an address too, in whatever part of memory the object lies."""
    for one, other in [
        ("140157097723184", "139637976727552"),
        ("94201444444444", "93824555555555"),
    ]:
        found = only(f"object {one}", f"object {other}", (Run(), Run()))
        assert found.what == "a memory address"
    for one, other in [("140157097723", "139637976727"), ("240157097723184", "239637976727552")]:
        found = only(f"order {one}", f"order {other}", (Run(), Run()))
        assert found.what != "a memory address"


def test_an_earlier_answer_explains_what_repeats_it() -> None:
    """What each run was told before is not its own draw; what it was not told stays unknown."""
    answers = "call me Ishmael-one", "call me Ishmael-two"
    found = only("Ishmael-one", "Ishmael-two", (Run(), Run()), answers)
    assert (found.what, found.on_tape) == ("an earlier answer", True)
    assert only("Ahab-three", "Ahab-four", (Run(), Run()), answers).what == UNKNOWN


def test_a_variable_and_the_process_id_are_named() -> None:
    """What differs between the surroundings of two runs, and shows."""
    one = Run(environment={"REGION": "eu-west-1", "HOME": "/home/ada"}, process=4711)
    other = Run(environment={"REGION": "us-east-2", "HOME": "/home/ada"}, process=5005)
    assert (
        only("in eu-west-1", "in us-east-2", (one, other)).what == "the environment variable REGION"
    )
    assert only("pid 4711.", "pid 5005.", (one, other)).what == "the process id"
    assert only("/home/ada is full", "/home/ada is empty", (one, other)).what == UNKNOWN


def test_a_choice_is_traced_to_the_last_line_that_drew_from_random() -> None:
    """`random.choice` shows a word and no number: the line that drew before is named."""
    found = only("red", "green", drawn("random", 17, 4))
    assert (found.what, found.site, found.on_tape) == ("random", "agent.py:4", True)
    late = tuple(Run([Draw("random", "agent.py:4", "17", asked=3)]) for _ in range(2))
    assert only("red", "green", (late[0], late[1])).what == UNKNOWN


def test_of_several_choices_that_nothing_lies_between_all_lines_are_named() -> None:
    """Which of them chose a word nobody saw, and a wrong line is worse than two."""
    lines = [(3, 0), (4, 1), (5, 1), (6, 2)]
    draws = [Draw("random", f"agent.py:{line}", "17", asked=asked) for line, asked in lines]
    (found,) = causes("red", "green", (Run(draws), Run(draws)), ("", ""), 1)
    assert (found.what, found.site) == ("random", "agent.py:4 or agent.py:5")


def test_what_was_read_after_an_exchange_is_not_in_it() -> None:
    """A time in full seconds fits what another line reads in the same second, later."""
    first, second = (
        Run([Draw("clock", "lib.py:3", str(at)), Draw("clock", "agent.py:9", str(at + 1), asked=1)])
        for at in (THEN, NOW)
    )
    found = only(f"[{THEN // 10**9}]", f"[{NOW // 10**9}]", (first, second))
    assert found.site == "lib.py:3"


def test_a_time_in_seconds_with_a_few_digits_is_found_by_all_of_them() -> None:
    """Of two lines that read in the same second, the one whose fraction it is."""
    first, second = (
        Run([Draw("clock", "lib.py:3", str(at)), Draw("clock", "agent.py:9", str(at + 10**8))])
        for at in (THEN, NOW)
    )
    found = only(f"[{THEN / 1e9:.3f}]", f"[{NOW / 1e9:.3f}]", (first, second))
    assert found.site == "lib.py:3"


def test_a_word_of_what_a_function_said_is_traced_to_it() -> None:
    """What differs of a `time.ctime()` is the time of day alone."""
    runs = drawn("time.ctime", "Tue Nov 24 16:55:06 2026", "Tue Nov 24 16:55:10 2026")
    found = only("16:55:06", "16:55:10", runs)
    assert (found.what, found.site, found.on_tape) == ("time.ctime()", "agent.py:4", False)

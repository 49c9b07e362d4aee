"""Differing text is traced to its source: by the drawn values first, by its look last."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tracefork_core.explaining.advice import ADVICE, FUNCTION_FIXES
from tracefork_core.explaining.causes import UNKNOWN, Cause, Run, causes
from tracefork_core.explaining.draws import Draw
from tracefork_core.explaining.patterns import Kind

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
    """Return the only cause of a difference."""
    (cause,) = causes(before, after, runs, answers, 0)
    return cause


SPELLINGS = ["%Y-%m-%d", "%A", "%B %d, %Y", "%d.%m.%Y", "%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y%m%d"]


@pytest.mark.parametrize("spelled", SPELLINGS)
def test_a_clock_read_is_found_in_its_usual_spellings(spelled: str) -> None:
    """Dates, times of day and weekdays are traced to the line that read the clock."""
    pair = f"({moment(THEN, spelled)})", f"({moment(NOW, spelled)})"
    found = only(*pair, drawn("clock", THEN, NOW))
    assert found == Cause("a read of the clock", "agent.py:4", on_tape=True)


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
def test_a_time_is_found_as_a_number(unit: int) -> None:
    """In seconds, milliseconds, microseconds or nanoseconds since the epoch."""
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
def test_random_bytes_are_found_as_ids_and_tokens(spell: Callable[[bytes], str]) -> None:
    """Entropy appears as a UUID, in hexadecimal or in base64."""
    found = only(
        f"id-{spell(ONE)}.", f"id-{spell(OTHER)}.", drawn("entropy", ONE.hex(), OTHER.hex())
    )
    assert (found.site, found.on_tape) == ("agent.py:4", True)


def test_both_runs_must_draw_at_the_same_line() -> None:
    """Values that two lines drew in two runs match by accident only."""
    one, _ = drawn("clock", THEN, NOW)
    _, other = drawn("clock", THEN, NOW, site="other.py:9")
    found = only("refund it by Friday", "refund it on Monday", (one, other))
    assert (found.what, found.on_tape) == (UNKNOWN, False)


def test_a_known_native_function_comes_with_its_fix() -> None:
    """The table of the boundary guard says what to use instead."""
    runs = drawn("fastuuid.uuid_v1mc", uuid.UUID(bytes=ONE), uuid.UUID(bytes=OTHER))
    found = only(f"<{uuid.UUID(bytes=ONE)}>", f"<{uuid.UUID(bytes=OTHER)}>", runs)
    assert (found.what, found.site, found.on_tape) == ("fastuuid.uuid_v1mc()", "agent.py:4", False)
    assert found.fix == FUNCTION_FIXES["fastuuid.uuid_v1mc"]


UNSEEN: dict[Kind, tuple[str, str]] = {
    "uuid": (str(uuid.UUID(bytes=ONE)), str(uuid.UUID(bytes=OTHER))),
    "address": ("<A at 0x7f4e0f7cbbd0>", "<A at 0x7f4ccb934390>"),
    "random": ("36350.364661206", "36353.861363124"),
    "token": ("tok_9fK2mQ7xLp4Zt1", "tok_Bw8Rn3Vc6Yh0Gd"),
}


@pytest.mark.parametrize("kind", UNSEEN)
def test_without_a_draw_the_look_of_both_values_decides(kind: Kind) -> None:
    """Such a value is not on the tape, and there is a fix."""
    found = only(*UNSEEN[kind], (Run(), Run()))
    assert found.what.startswith(ADVICE[kind].looks)
    assert (found.site, found.on_tape, found.fix) == (None, False, ADVICE[kind].fix)


def test_an_address_can_be_a_decimal_number() -> None:
    """`id()` returns an address, in any of the ranges where objects lie."""
    for one, other in [
        ("140157097723184", "139637976727552"),
        ("94201444444444", "93824555555555"),
    ]:
        found = only(f"object {one}", f"object {other}", (Run(), Run()))
        assert found.what == ADVICE["address"].looks
    for one, other in [("140157097723", "139637976727"), ("240157097723184", "239637976727552")]:
        found = only(f"order {one}", f"order {other}", (Run(), Run()))
        assert found.what != ADVICE["address"].looks


def test_an_earlier_answer_explains_its_quotes() -> None:
    """Text that both runs received before is not a draw; other text stays unknown."""
    answers = "call me Ishmael-one", "call me Ishmael-two"
    found = only("Ishmael-one", "Ishmael-two", (Run(), Run()), answers)
    assert found.what != UNKNOWN
    assert found.on_tape
    assert only("Ahab-three", "Ahab-four", (Run(), Run()), answers).what == UNKNOWN


def test_an_environment_variable_and_the_process_id_are_named() -> None:
    """If their values differ between the runs and both texts contain them."""
    one = Run(environment={"REGION": "eu-west-1", "HOME": "/home/ada"}, process=4711)
    other = Run(environment={"REGION": "us-east-2", "HOME": "/home/ada"}, process=5005)
    assert "REGION" in only("in eu-west-1", "in us-east-2", (one, other)).what
    assert only("pid 4711.", "pid 5005.", (one, other)).what == ADVICE["process"].looks
    assert only("/home/ada is full", "/home/ada is empty", (one, other)).what == UNKNOWN


def test_a_choice_is_traced_to_the_last_line_that_drew_from_random() -> None:
    """`random.choice` leaves a word in the text, not its number: the line before is named."""
    found = only("red", "green", drawn("random", 17, 4))
    assert (found.what, found.site, found.on_tape) == ("random", "agent.py:4", True)
    late = tuple(Run([Draw("random", "agent.py:4", "17", asked=3)]) for _ in range(2))
    assert only("red", "green", (late[0], late[1])).what == UNKNOWN


def test_all_lines_that_draw_between_two_requests_are_named() -> None:
    """Each may have chosen the word, and a wrong line is worse than two lines."""
    lines = [(3, 0), (4, 1), (5, 1), (6, 2)]
    draws = [Draw("random", f"agent.py:{line}", "17", asked=asked) for line, asked in lines]
    (found,) = causes("red", "green", (Run(draws), Run(draws)), ("", ""), 1)
    assert (found.what, found.site) == ("random", "agent.py:4 or agent.py:5")


def test_a_later_draw_is_no_cause() -> None:
    """A time in full seconds also matches a later clock read in the same second."""
    first, second = (
        Run([Draw("clock", "lib.py:3", str(at)), Draw("clock", "agent.py:9", str(at + 1), asked=1)])
        for at in (THEN, NOW)
    )
    found = only(f"[{THEN // 10**9}]", f"[{NOW // 10**9}]", (first, second))
    assert found.site == "lib.py:3"


def test_a_fraction_of_a_second_tells_two_lines_apart() -> None:
    """Of two lines that read the clock in the same second, one read this fraction."""
    first, second = (
        Run([Draw("clock", "lib.py:3", str(at)), Draw("clock", "agent.py:9", str(at + 10**8))])
        for at in (THEN, NOW)
    )
    found = only(f"[{THEN / 1e9:.3f}]", f"[{NOW / 1e9:.3f}]", (first, second))
    assert found.site == "lib.py:3"


def test_a_part_of_a_returned_text_is_traced_to_its_function() -> None:
    """Only the time of day differs between two results of `time.ctime()`."""
    runs = drawn("time.ctime", "Tue Nov 24 16:55:06 2026", "Tue Nov 24 16:55:10 2026")
    found = only("16:55:06", "16:55:10", runs)
    assert (found.what, found.site, found.on_tape) == ("time.ctime()", "agent.py:4", False)

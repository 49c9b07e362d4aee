"""The kind of a differing value: named only when sure, never for an ordinary edit."""

from __future__ import annotations

import base64
import os
import random
import secrets
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tracefork_core.explaining.patterns import kind_of

NOW = datetime(2026, 11, 22, 6, 30, tzinfo=UTC)
THEN = NOW - timedelta(days=40, hours=3)
FORMS = [
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M:%S.%f+00:00",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%d %H:%M:%S",
    "%Y/%m/%d",
    "%A, %B %d, %Y",
    "%B %d, %Y at %I:%M %p",
    "%d %b %Y",
    "%a, %d %b %Y %H:%M:%S GMT",
    "%H:%M",
    "%I:%M:%S %p",
    "%I:%M %p",
]
RANDOM_VALUES: dict[str, tuple[str, Callable[[], object]]] = {
    "uuid4": ("uuid", uuid.uuid4),
    "in a name": ("uuid", lambda: f"run-{uuid.uuid4()}"),
    "hex": ("token", lambda: uuid.uuid4().hex),
    "token_hex": ("token", lambda: secrets.token_hex(12)),
    "base64": ("token", lambda: "call_" + base64.b64encode(os.urandom(24)).decode()),
    "float": ("random", random.random),
    "two": ("uuid", lambda: f"{uuid.uuid4()} and {random.random()}"),
}
EDITS = [
    ("Be brief.", "Be very brief."),
    ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20"),
    ("Meta-Llama-3-70B-Instruct", "Meta-Llama-3-13B-Instruct"),
    ("ft:gpt-4o:acme:support:9aBcDe1f", "ft:gpt-4o:acme:support:9aBcDe2f"),
    ("Deadline: 2024-01-31", "Deadline: 2024-02-29"),
    ("Open from 09:00", "Open from 10:00"),
    ("Open from 09:00 pm", "Open from 6:30 pm"),
    ("call +4915112345678", "call +4915112345679"),
    ("order 1234567890", "order 1234567891"),
    ("commit a1b2c3d4", "commit a1b2c3d5"),
    ("version 1.5", "version 5.1"),
    ("2026-11-12", "2026-12-11"),
    (0.7, 0.8),
    (1024, 2048),
    (None, "set"),
    (["a", "b"], ["a", "c"]),
    ({"a": 1}, {"a": 2}),
    ("same", "same"),
]
WORDS = st.sampled_from("you are a helpful agent be brief and kind in all 3 answers".split())


@pytest.mark.parametrize("form", FORMS)
def test_times_are_recognised_in_their_usual_spellings(form: str) -> None:
    """The recorded time may be any, the new one must be now."""
    before, now = f"It is {THEN:{form}} here.", f"It is {NOW:{form}} here."
    assert kind_of(before, now, now=NOW) == "clock"


@pytest.mark.parametrize("scale", [1, 1000, 1_000_000, 1_000_000_000])
def test_seconds_since_the_epoch_are_recognised(scale: int) -> None:
    """In seconds to nanoseconds, as numbers and inside texts, with fractions too."""
    before, now = int(THEN.timestamp()) * scale, int(NOW.timestamp()) * scale
    assert kind_of(before, now, now=NOW) == "clock"
    assert kind_of(f"at {before}.", f"at {now}.", now=NOW) == "clock"
    assert kind_of(THEN.timestamp() + 0.25, NOW.timestamp() + 0.5, now=NOW) == "clock"


def test_a_date_other_than_now_is_not_a_clock_read() -> None:
    """The control: a clock shows the present, an edit may hold any date."""
    last_week = NOW - timedelta(days=7)
    assert kind_of(f"{THEN:%Y-%m-%d}", f"{last_week:%Y-%m-%d}", now=NOW) is None
    assert kind_of(int(THEN.timestamp()), int(last_week.timestamp()), now=NOW) is None


@pytest.mark.parametrize(("kind", "draw"), RANDOM_VALUES.values(), ids=RANDOM_VALUES.keys())
def test_random_values_are_recognised(kind: str, draw: Callable[[], object]) -> None:
    """Ids, tokens and random numbers, two of a kind at the same place."""
    kinds = {kind_of(f"id: {draw()}!", f"id: {draw()}!") for _ in range(20)}
    assert kind in kinds
    assert kinds <= {kind, None}


def test_equal_values_are_not_the_difference() -> None:
    """A UUID, an address and an old date that did not change are left alone."""
    same = f"Order {uuid.uuid4()} of 2024-01-31, {object()!r}."
    assert kind_of(f"{same} It is {THEN}.", f"{same} It is {NOW}.", now=NOW) == "clock"
    assert kind_of(f"{same} {random.random()}", f"{same} {random.random()}") == "random"
    assert kind_of(f"{same} Be brief.", f"{same} Be very brief.") is None


def test_a_measured_number_is_recognised() -> None:
    """`time.monotonic` counts seconds since the machine started, with many digits."""
    assert kind_of("after 1103.644534596 s", "after 1105.938756271 s") == "random"


def test_a_memory_address_is_recognised() -> None:
    """The default `repr` of an object contains its address."""
    one, two = object(), object()
    assert kind_of(f"tools: {one!r}", f"tools: {two!r}") == "address"


def test_the_id_of_this_process_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a Message-ID; another number, or a process id as small as a count, is not."""
    before, now = 5942, 5925
    monkeypatch.setattr(os, "getpid", lambda: now)
    assert kind_of(f"<1795.{before}.1085@host>", f"<1795.{now}.1085@host>") == "process"
    assert kind_of(f"<1795.{before}.1085@host>", f"<1795.{now + 1}.1085@host>") is None
    monkeypatch.setattr(os, "getpid", lambda: 7)
    assert kind_of("Take 3 of them.", "Take 7 of them.") is None


@pytest.mark.parametrize(
    ("recorded", "actual"),
    [
        ("a, b and c", "c, b and a"),
        ("{'red', 'green'}", "{'green', 'red'}"),
        (["x", "y"], ["y", "x"]),
        ([{"name": "x", "n": 1}, {"name": "y"}], [{"name": "y"}, {"n": 1, "name": "x"}]),
    ],
)
def test_another_order_is_recognised(recorded: object, actual: object) -> None:
    """In texts and in lists."""
    assert kind_of(recorded, actual) == "order"


@pytest.mark.parametrize(("recorded", "actual"), EDITS)
def test_an_ordinary_edit_has_no_kind(recorded: object, actual: object) -> None:
    """People change model names, dates, numbers and lists in prompts and parameters."""
    assert kind_of(recorded, actual, now=NOW) is None


@given(st.lists(WORDS, min_size=1), st.lists(WORDS, min_size=1), st.lists(WORDS))
def test_no_edit_of_words_has_a_kind(old: list[str], now: list[str], rest: list[str]) -> None:
    """Property: words replaced by words are an edit, unless only their order differs."""
    before = [*old, *rest]
    after = [*now, *rest]
    kind = kind_of(" ".join(before), " ".join(after), now=NOW)
    assert kind == ("order" if before != after and sorted(before) == sorted(after) else None)


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.text(max_size=20))
def test_no_edit_of_a_number_has_a_kind(before: int, now: int, text: str) -> None:
    """Property: numbers below the epoch of this century are counts, prices and ids."""
    assume(now != os.getpid())
    assert kind_of(before, now, now=NOW) is None
    assert kind_of({"n": before, "text": text}, {"n": now, "text": text}, now=NOW) is None


@given(st.text(), st.text())
def test_no_text_raises(before: str, now: str) -> None:
    """Property: equal texts have no kind either."""
    kind_of(before, now, now=NOW)
    assert kind_of(before, before, now=NOW) is None

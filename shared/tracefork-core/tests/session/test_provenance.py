"""Where a differing value seems to come from: named when sure, never of an ordinary edit."""

from __future__ import annotations

import base64
import logging
import os
import random
import secrets
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tracefork_core import DivergenceError, record, replay
from tracefork_core.explaining.provenance import source_of
from tracefork_testkit import ProviderServer

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
CHANCE: dict[str, tuple[str, Callable[[], object]]] = {
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
def test_a_read_of_the_clock_is_one(form: str) -> None:
    """Dates and times in the usual spellings, where the new one is now."""
    before, now = f"It is {THEN:{form}} here.", f"It is {NOW:{form}} here."
    assert source_of(before, now, now=NOW) == "clock"


@pytest.mark.parametrize("scale", [1, 1000, 1_000_000, 1_000_000_000])
def test_a_number_of_seconds_is_a_read_of_the_clock(scale: int) -> None:
    """Epoch seconds to nanoseconds, as numbers and inside texts; fractions too."""
    before, now = int(THEN.timestamp()) * scale, int(NOW.timestamp()) * scale
    assert source_of(before, now, now=NOW) == "clock"
    assert source_of(f"at {before}.", f"at {now}.", now=NOW) == "clock"
    assert source_of(THEN.timestamp() + 0.25, NOW.timestamp() + 0.5, now=NOW) == "clock"


def test_another_date_than_now_is_no_read_of_the_clock() -> None:
    """The control: a clock tells the present, an edit any date."""
    last_week = NOW - timedelta(days=7)
    assert source_of(f"{THEN:%Y-%m-%d}", f"{last_week:%Y-%m-%d}", now=NOW) is None
    assert source_of(int(THEN.timestamp()), int(last_week.timestamp()), now=NOW) is None


@pytest.mark.parametrize(("source", "draw"), CHANCE.values(), ids=CHANCE.keys())
def test_chance_is_told(source: str, draw: Callable[[], object]) -> None:
    """Ids, tokens and random numbers, two of a kind at the same place."""
    found = {source_of(f"id: {draw()}!", f"id: {draw()}!") for _ in range(20)}
    assert source in found
    assert found <= {source, None}


def test_what_is_equal_in_both_is_no_source() -> None:
    """A UUID, an address and an old date that did not change are not what changed."""
    kept = f"Order {uuid.uuid4()} of 2024-01-31, {object()!r}."
    assert source_of(f"{kept} It is {THEN}.", f"{kept} It is {NOW}.", now=NOW) == "clock"
    assert source_of(f"{kept} {random.random()}", f"{kept} {random.random()}") == "random"
    assert source_of(f"{kept} Be brief.", f"{kept} Be very brief.") is None


def test_a_number_that_was_measured_is_told() -> None:
    """What `time.monotonic` counts, in seconds since the machine was started."""
    assert source_of("after 1103.644534596 s", "after 1105.938756271 s") == "random"


def test_an_address_is_told() -> None:
    """What `repr` of an object without one of its own gives."""
    one, two = object(), object()
    assert source_of(f"tools: {one!r}", f"tools: {two!r}") == "address"


def test_the_id_of_this_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that another run had otherwise, and that is this process's, as in a Message-ID."""
    before, now = 5942, 5925
    monkeypatch.setattr(os, "getpid", lambda: now)
    assert source_of(f"<1795.{before}.1085@host>", f"<1795.{now}.1085@host>") == "process"
    assert source_of(f"<1795.{before}.1085@host>", f"<1795.{now + 1}.1085@host>") is None
    monkeypatch.setattr(os, "getpid", lambda: 7)
    assert source_of("Take 3 of them.", "Take 7 of them.") is None


@pytest.mark.parametrize(
    ("recorded", "actual"),
    [
        ("a, b and c", "c, b and a"),
        ("{'red', 'green'}", "{'green', 'red'}"),
        (["x", "y"], ["y", "x"]),
        ([{"name": "x", "n": 1}, {"name": "y"}], [{"name": "y"}, {"n": 1, "name": "x"}]),
    ],
)
def test_another_order_is_told(recorded: object, actual: object) -> None:
    """The same parts in another order, in texts and lists."""
    assert source_of(recorded, actual) == "order"


@pytest.mark.parametrize(("recorded", "actual"), EDITS)
def test_an_ordinary_edit_is_left_alone(recorded: object, actual: object) -> None:
    """What people change in prompts and parameters is nobody's chance."""
    assert source_of(recorded, actual, now=NOW) is None


@given(st.lists(WORDS, min_size=1), st.lists(WORDS, min_size=1), st.lists(WORDS))
def test_no_edit_of_words_has_a_source(kept: list[str], now: list[str], rest: list[str]) -> None:
    """Property: words replaced by words are an edit; only their order can be one of a set."""
    before = [*kept, *rest]
    after = [*now, *rest]
    found = source_of(" ".join(before), " ".join(after), now=NOW)
    assert found == ("order" if before != after and sorted(before) == sorted(after) else None)


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.text(max_size=20))
def test_no_edit_of_a_number_has_a_source(before: int, now: int, text: str) -> None:
    """Property: numbers below the epoch of this century are counts, prices and ids."""
    assume(now != os.getpid())
    assert source_of(before, now, now=NOW) is None
    assert source_of({"n": before, "text": text}, {"n": now, "text": text}, now=NOW) is None


@given(st.text(), st.text())
def test_any_two_texts_have_an_answer(before: str, now: str) -> None:
    """Property: nothing raises, and equal texts have no source."""
    source_of(before, now, now=NOW)
    assert source_of(before, before, now=NOW) is None


LEAKS: dict[str, tuple[str, str, Callable[[], object]]] = {
    "datetime": ("a read of the clock", "clock", lambda: datetime.now(UTC).isoformat()),
    "epoch": ("a read of the clock", "clock", lambda: int(time.time())),
    "uuid": ("a UUID, drawn at random", "entropy", lambda: str(uuid.uuid4())),
    "token": ("a token, drawn at random", "entropy", lambda: secrets.token_hex(16)),
    "float": ("a number drawn at random", "entropy", random.random),
}


@pytest.mark.parametrize(("looks", "switch", "draw"), LEAKS.values(), ids=LEAKS.keys())
def test_the_divergence_names_the_source(
    tape: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    looks: str,
    switch: str,
    draw: Callable[[], object],
) -> None:
    """With the clock or chance off, the card says what the value looks like and what was off."""

    def agent() -> None:
        http.post(f"{provider.url}/echo", json={"prompt": f"You are run {draw()}."})

    with record(tape, clock=switch != "clock", entropy=switch != "entropy"):
        agent()
    if switch == "clock":
        time.sleep(1.1)  # Epoch seconds have to differ.
    with pytest.raises(DivergenceError) as raised, replay(tape):
        agent()
    (hint,) = raised.value.divergence.hints
    assert hint.startswith(f"looks like {looks}")
    assert f"recorded without {'the clock' if switch == 'clock' else 'chance'}" in hint
    assert f"(--no-{switch})" in hint


def test_a_source_that_is_on_the_tape_is_said_to_come_from_elsewhere(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Replayed without the recorded clock, the hint names that; with it there is no divergence."""

    def agent() -> None:
        now = datetime.now(UTC).isoformat()
        http.post(f"{provider.url}/echo", json={"prompt": f"It is {now}."})

    with record(tape):
        agent()
    with replay(tape):
        agent()
    with pytest.raises(DivergenceError) as raised, replay(tape, clock=False):
        agent()
    (hint,) = raised.value.divergence.hints
    assert "the clock is on this tape: this came from elsewhere" in hint


def test_a_time_that_another_timezone_spells_otherwise_is_said_to_be_that(
    tape: Path, provider: ProviderServer, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that reads the clock for the agent, as logging does, spells it for the machine."""
    logged = logging.Formatter("%(asctime)s")

    def agent() -> None:
        line = logged.format(logging.makeLogRecord({}))
        http.post(f"{provider.url}/echo", json={"prompt": line})

    with record(tape):
        agent()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        with pytest.raises(DivergenceError) as raised, replay(tape):
            agent()
    finally:
        monkeypatch.undo()
        time.tzset()
    (hint,) = raised.value.divergence.hints
    assert hint.startswith("looks like a read of the clock; the clock is on this tape: this is ")
    assert "spelled in another timezone (UTC" in hint
    assert "when this was recorded, UTC+0900 JST now)" in hint
    assert "--no-clock" in hint


def test_an_edited_prompt_has_no_hint(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The control: an ordinary edit diverges without a word on chance."""
    url = f"{provider.url}/echo"
    with record(tape, clock=False, entropy=False):
        http.post(url, json={"prompt": "Be brief.", "tools": ["a", "b"]})
    with pytest.raises(DivergenceError) as raised, replay(tape):
        http.post(url, json={"prompt": "Be very brief.", "tools": ["a", "b"]})
    assert raised.value.divergence.hints == ()


def test_tools_in_another_order_are_told(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Where whole items of a list change places, the order is named, not the first value."""
    url = f"{provider.url}/echo"
    with record(tape):
        http.post(url, json={"tools": [{"name": "find"}, {"name": "send"}]})
    with pytest.raises(DivergenceError) as raised, replay(tape):
        http.post(url, json={"tools": [{"name": "send"}, {"name": "find"}]})
    (hint,) = raised.value.divergence.hints
    assert hint.startswith("the same words in another order")


def test_an_id_in_a_url_is_told(tape: Path, provider: ProviderServer, http: httpx2.Client) -> None:
    """What is drawn at random may be asked for by address."""

    def agent() -> None:
        http.post(f"{provider.url}/echo?run={uuid.uuid4()}", content=b"")

    with record(tape, entropy=False):
        agent()
    with pytest.raises(DivergenceError) as raised, replay(tape):
        agent()
    assert raised.value.divergence.pointer == "url"
    assert raised.value.divergence.hints[0].startswith("looks like a UUID")

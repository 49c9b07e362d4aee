"""The hints on a divergence card: what the value looks like, and what the tape says about it."""

from __future__ import annotations

import logging
import random
import secrets
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from tracefork_core import DivergenceError, record, replay
from tracefork_core.explaining.advice import ADVICE
from tracefork_core.explaining.patterns import Kind
from tracefork_testkit import ProviderServer

LEAKS: dict[str, tuple[Kind, str, Callable[[], object]]] = {
    "datetime": ("clock", "clock", lambda: datetime.now(UTC).isoformat()),
    "epoch": ("clock", "clock", lambda: int(time.time())),
    "uuid": ("uuid", "entropy", lambda: str(uuid.uuid4())),
    "token": ("token", "entropy", lambda: secrets.token_hex(16)),
    "float": ("random", "entropy", random.random),
}


@pytest.mark.parametrize(("kind", "switch", "draw"), LEAKS.values(), ids=LEAKS.keys())
def test_a_hint_names_the_source_that_was_not_recorded(
    tape: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    kind: Kind,
    switch: str,
    draw: Callable[[], object],
) -> None:
    """With the clock or randomness off, it says what the value looks like and which option."""

    def agent() -> None:
        http.post(f"{provider.url}/echo", json={"prompt": f"You are run {draw()}."})

    with record(tape, clock=switch != "clock", entropy=switch != "entropy"):
        agent()
    if switch == "clock":
        time.sleep(1.1)  # Epoch seconds have to differ.
    with pytest.raises(DivergenceError) as raised, replay(tape):
        agent()
    (hint,) = raised.value.divergence.hints
    assert hint.startswith(f"{ADVICE[kind].looks}: ")
    assert f"not on this tape (recorded with --no-{switch})" in hint


def test_a_hint_says_that_the_source_is_on_the_tape(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Only a replay without the recorded clock diverges, and its hint names that option."""

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
    assert "the clock is on this tape" in hint
    assert "--no-clock" in hint


def test_a_hint_names_both_timezones(
    tape: Path, provider: ProviderServer, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that reads the clock for the agent, as logging does, prints local time."""
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
    assert hint.startswith(f"{ADVICE['clock'].looks}: the clock is on this tape")
    assert "(UTC" in hint
    assert "UTC+0900 JST now)" in hint
    assert "--no-clock" in hint


def test_an_edited_prompt_has_no_hint(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The control: an ordinary edit diverges without a guess about its source."""
    url = f"{provider.url}/echo"
    with record(tape, clock=False, entropy=False):
        http.post(url, json={"prompt": "Be brief.", "tools": ["a", "b"]})
    with pytest.raises(DivergenceError) as raised, replay(tape):
        http.post(url, json={"prompt": "Be very brief.", "tools": ["a", "b"]})
    assert raised.value.divergence.hints == ()


def test_tools_in_another_order_have_a_hint(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """If whole items of a list change places, the hint is about their order."""
    url = f"{provider.url}/echo"
    with record(tape):
        http.post(url, json={"tools": [{"name": "find"}, {"name": "send"}]})
    with pytest.raises(DivergenceError) as raised, replay(tape):
        http.post(url, json={"tools": [{"name": "send"}, {"name": "find"}]})
    (hint,) = raised.value.divergence.hints
    assert hint.startswith("the same words in another order")


def test_a_random_id_in_a_url_has_a_hint(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """A random value may also stand in the URL."""

    def agent() -> None:
        http.post(f"{provider.url}/echo?run={uuid.uuid4()}", content=b"")

    with record(tape, entropy=False):
        agent()
    with pytest.raises(DivergenceError) as raised, replay(tape):
        agent()
    assert raised.value.divergence.pointer == "url"
    assert raised.value.divergence.hints[0].startswith(f"{ADVICE['uuid'].looks}: ")

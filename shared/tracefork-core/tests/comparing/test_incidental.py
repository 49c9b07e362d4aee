"""Of the texts of a run, its own clock and ids are replaced, and nothing else."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tracefork_core import Tape
from tracefork_core.comparing.incidental import Incidental

from .runs import write


@pytest.fixture
def incidental(tape: Path) -> Incidental:
    """Return what is incidental to a run of now."""
    with Tape.open(write(tape, [])) as opened:
        return Incidental(opened)


def test_the_clock_of_the_run_is_replaced_in_any_spelling(incidental: Incidental) -> None:
    """In UTC and in local time, as ISO, in words, in seconds and in milliseconds."""
    now = datetime.now(UTC)
    for text in (
        now.isoformat(),
        f"{now:%Y-%m-%dT%H:%M:%SZ}",
        f"{now.astimezone():%Y-%m-%d %H:%M:%S}",
        str(int(time.time())),
        str(time.time()),
        str(time.time_ns() // 10**6),
    ):
        assert incidental.plain(f"It is {text} now.") == "It is <clock> now.", text
    for text in (
        f"{now:%Y-%m-%d}",
        f"{now:%d %B %Y}",
        f"{now:%B %d, %Y}",
        f"{now:%b} {now.day}, {now:%Y}",
    ):
        assert incidental.plain(f"on {text}") == "on <today>", text
    assert incidental.number(int(time.time())) == "<clock>"


def test_other_times_are_content(incidental: Incidental) -> None:
    """A date that an agent books is what one looks for in a comparison."""
    later = datetime.now(UTC) + timedelta(days=3)
    for text in (
        f"{later:%Y-%m-%d}",
        f"{later:%d %B %Y}",
        later.isoformat(),
        "2019-05-04T10:00:00Z",
        str(int(later.timestamp())),
        "1999999999",
    ):
        assert incidental.plain(text) == text
    assert incidental.number(1_600_000_000) == 1_600_000_000


def test_ids_are_replaced(incidental: Incidental) -> None:
    """UUIDs with and without hyphens, ULIDs, the ids of providers, addresses of objects."""
    for text in (
        str(uuid.uuid4()),
        uuid.uuid4().hex,
        "01J9ZC4Q8N6X0V5T3R2P1M7K8H",
        "call_9aFzQ81mmT0",
        "toolu_01A09q90qw90lq917835lq9",
        "chatcmpl-9xYz12345678",
        "run--0f3c2b1a",
        "0x7f3a2c4d5e6f",
    ):
        assert incidental.plain(f"it is {text}.") == "it is <id>.", text


def test_names_and_numbers_are_content(incidental: Incidental) -> None:
    """Words that only look like ids stay: a difference in them is one."""
    for text in (
        "call_center_hours",
        "message_history",
        "order 1234567",
        "+49 30 1234567",
        "gpt-5-mini-2025-08-07",
        "run_until_complete",
        "12.5",
    ):
        assert incidental.plain(text) == text

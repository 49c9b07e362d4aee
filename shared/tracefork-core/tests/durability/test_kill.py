"""What the agent has seen is on the tape, whenever its process is killed."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tracefork_core import Tape
from tracefork_testkit import ProviderServer

SEED = 20261122
KILLS = 6
AGENTS = ["one_by_one", "gathered", "streamed", "threaded"]


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as opened:
        yield opened


def check(tape: Path, seen: list[dict[str, Any]]) -> None:
    """Fail unless everything seen is on the tape, with the bytes that were seen."""
    with Tape.open(tape) as opened:
        assert not opened.complete
        assert opened.receipt is None
        found = {}
        for exchange in opened.exchanges:
            parts = urlsplit(exchange.url)
            found[f"{parts.path}?{parts.query}"] = exchange
        for said in seen:
            assert said["query"] in found, f"{said['query']} was seen and is not on the tape"
            exchange = found[said["query"]]
            body = exchange.response_body
            assert hashlib.sha256(body[: said["size"]]).hexdigest() == said["sha"]
            assert not said["whole"] or (exchange.end, len(body)) == ("eof", said["size"])


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("kill", range(KILLS))
def test_nothing_seen_is_lost(
    tape: Path, server: ProviderServer, nursery: Any, agent: str, kill: int
) -> None:
    """Killed at any moment, a recording opens, says it is cut off, and replays up to there."""
    chance = random.Random(f"{SEED} {agent} {kill}")
    after, wait = chance.randrange(0, 24), chance.uniform(0, 0.008)
    print(f"{agent}: killed {wait * 1000:.1f} ms after {after} things were seen")
    seen = nursery.run("record", agent, server.url, tape, kill_after=after, wait=wait).seen
    assert len(seen) >= after
    check(tape, seen)

    replayed = nursery.run("replay", agent, server.url, tape)
    assert replayed.error == "ReplayError", replayed.message
    assert "is incomplete: the recording was cut off" in replayed.message
    again = [(said["query"], said["size"], said["sha"]) for said in replayed.seen]
    assert {(said["query"], said["size"], said["sha"]) for said in seen} <= set(again)


def test_the_check_finds_what_is_lost(tape: Path, server: ProviderServer, nursery: Any) -> None:
    """Negative control: without its last event, the same tape fails the same check."""
    seen = nursery.run("record", "three_then_wait", server.url, tape, kill_after=3).seen
    check(tape, seen)
    with closing(sqlite3.connect(tape)) as db, db:
        db.execute("DELETE FROM log WHERE seq = (SELECT max(seq) FROM log)")
    with pytest.raises(AssertionError, match="i=2 was seen and is not on the tape"):
        check(tape, seen)

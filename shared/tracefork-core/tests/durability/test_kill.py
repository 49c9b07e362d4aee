"""Whatever the agent has seen is on the tape, whenever its process is killed."""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from tracefork_core import Tape
from tracefork_core.tape import journal, schema
from tracefork_core.tape.event import ExchangePayload
from tracefork_core.tape.integrity import check_integrity
from tracefork_testkit import ProviderServer

SEED = 20261122
AGENTS = ["one_by_one", "gathered", "streamed", "threaded", "with_aiohttp"]
# `TRACEFORK_KILLS=200` kills that often.
KILLS = -(-int(os.environ.get("TRACEFORK_KILLS", "24")) // len(AGENTS))


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as opened:
        yield opened


def check(tape: Path, seen: list[dict[str, Any]], *, complete: bool = False) -> None:
    """Fail unless everything seen is on the tape, intact, with the bytes that the agent saw."""
    found_whole = check_integrity(tape)
    assert (found_whole.damage, found_whole.complete) == ([], complete)
    check_journal(tape)
    with Tape.open(tape) as opened:
        assert opened.complete is complete
        assert (opened.receipt is not None) is complete
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


def check_journal(tape: Path) -> None:
    """Fail unless requests in flight are in the journal as sent, and in their turns."""
    for flight in journal.read(tape):
        payload = msgspec.json.decode(flight.payload, type=ExchangePayload)
        assert payload.n == flight.n
        assert hashlib.sha256(flight.body).hexdigest() == payload.request.body
        turns = [turn for turn, _ in flight.chunks]
        assert turns == sorted(set(turns))


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("kill", range(KILLS))
def test_a_killed_recording_keeps_everything_the_agent_saw(
    tape: Path, server: ProviderServer, nursery: Any, agent: str, kill: int
) -> None:
    """It opens, says that it is incomplete, and replays up to the kill."""
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


def test_the_check_finds_a_lost_exchange(tape: Path, server: ProviderServer, nursery: Any) -> None:
    """The negative control: without its last event, the same tape fails the check."""
    seen = nursery.run("record", "three_then_wait", server.url, tape, kill_after=3).seen
    check(tape, seen)
    with closing(sqlite3.connect(tape)) as db, db:
        db.execute("DELETE FROM log WHERE seq = (SELECT max(seq) FROM log)")
    schema.beside(tape, "-flight").unlink()
    with pytest.raises(AssertionError, match="i=2 was seen and is not on the tape"):
        check(tape, seen)

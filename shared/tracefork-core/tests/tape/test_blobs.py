"""Bodies are stored once, and verified at each read."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from backports import zstd

from tracefork_core import Tape, TapeError, record, replay
from tracefork_core.tape.digest import sha256
from tracefork_core.tape.schema import LARGEST
from tracefork_testkit import ProviderServer

Alter = Any


@pytest.fixture
def recorded(tape: Path, provider: ProviderServer, http: httpx2.Client) -> Path:
    """Record one exchange whose body compresses and one whose body does not."""
    with record(tape):
        http.post(f"{provider.url}/echo", content=b"text " * 500)
        http.post(f"{provider.url}/echo", content=b"short")
    return tape


def read_bodies(path: Path) -> list[bytes]:
    with Tape.open(path) as tape:
        return [exchange.response_body for exchange in tape.exchanges]


def test_one_flipped_bit_in_a_body_is_found(recorded: Path, alter: Alter) -> None:
    """A body that does not match its address is refused, wherever the bit is."""
    whole = read_bodies(recorded)
    assert whole == [b"text " * 500, b"short"]
    for place in (0, 1250, 2499, 2500, 2504):

        def flipped(data: bytes, place: int = place) -> bytes:
            return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]

        alter(recorded, bodies=flipped)
        with pytest.raises(TapeError, match=sha256(whole[place >= 2500])[:12]):
            read_bodies(recorded)
        alter(recorded, bodies=flipped)
        assert read_bodies(recorded) == whole


def test_a_replay_of_a_changed_body_fails(
    recorded: Path, http: httpx2.Client, alter: Alter
) -> None:
    """The agent gets no changed byte, and cannot swallow the error."""
    alter(recorded, bodies=lambda data: data.replace(b"text", b"test"))
    changed = sha256(b"text " * 500)[:12]
    with Tape.open(recorded) as tape:
        url = tape.exchanges[0].url

    def ask() -> None:
        with replay(recorded):
            with pytest.raises(TapeError, match=changed):
                http.post(url, content=b"text " * 500)
            with suppress(TapeError):
                http.post(url, content=b"short")

    with pytest.raises(TapeError, match=changed):
        ask()


def of_the_first_blob(**fields: object) -> Callable[[bytes], bytes]:
    """Return a change that gives the first blob other fields."""
    left = [fields]

    def change(line: bytes) -> bytes:
        event = json.loads(line)
        if event["kind"] != "blob" or not left:
            return line
        event["aside"] |= left.pop()
        return json.dumps(event).encode() + b"\n"

    return change


@pytest.mark.parametrize("declared", [10, 2499, LARGEST + 1, -1, 2**62])
def test_a_body_that_lies_about_its_size_is_refused(
    recorded: Path, declared: int, alter: Alter
) -> None:
    """No byte beyond the declared size is read, and the declared size has a limit."""
    alter(recorded, events=of_the_first_blob(size=declared))
    with pytest.raises(TapeError, match=sha256(b"text " * 500)[:12]):
        read_bodies(recorded)


@pytest.mark.parametrize(
    "fields",
    [
        {"base": "itself", "pieces": [[0, 2500]]},
        {"base": "0" * 64, "pieces": [[0, 2500]]},
        {"pieces": [[0, 2500]]},
        {"pieces": [[-5], [2505]]},
        {"pieces": [[2500, 0, 1]]},
        {"pieces": [[2600]]},
        {"pieces": [[100]]},
        {"at": 10**9},
        {"at": -1},
    ],
)
def test_a_delta_that_no_recorder_writes_is_refused(
    recorded: Path, fields: dict[str, object], alter: Alter
) -> None:
    """Its base is missing or itself, its pieces are malformed, or they reach beyond the base."""
    whole, sha = read_bodies(recorded), sha256(b"text " * 500)
    if fields.get("base") == "itself":
        fields = fields | {"base": sha}
    alter(recorded, events=of_the_first_blob())
    assert read_bodies(recorded) == whole
    alter(recorded, events=of_the_first_blob(**fields))
    with pytest.raises(TapeError, match=f"{sha[:12]}|0{{12}}"):
        read_bodies(recorded)


def test_a_bomb_is_not_unpacked(recorded: Path) -> None:
    """A small frame with immense content is refused at its limit."""
    bomb = zstd.compress(bytes(LARGEST), options={zstd.CompressionParameter.window_log: 20})
    assert len(bomb) < 20_000
    with closing(sqlite3.connect(recorded)) as db, db:
        assert db.execute("UPDATE log SET bodies = ?", (bomb,)).rowcount == 1
    with pytest.raises(TapeError, match=str(len(bomb))):
        read_bodies(recorded)
    with closing(sqlite3.connect(recorded)) as db, db:
        assert db.execute("UPDATE log SET events = ?", (bomb,)).rowcount == 1
    with pytest.raises(TapeError, match=str(len(bomb))):
        read_bodies(recorded)


def test_a_frame_that_needs_much_memory_is_refused(recorded: Path) -> None:
    """A frame may not ask for a larger window than recorders use."""
    compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    greedy = compressor.compress(os.urandom(99), compressor.FLUSH_BLOCK) + compressor.flush()
    with closing(sqlite3.connect(recorded)) as db, db:
        assert db.execute("UPDATE log SET bodies = ?", (greedy,)).rowcount == 1
    with pytest.raises(TapeError, match="too much memory"):
        read_bodies(recorded)


def test_a_missing_body_is_named(recorded: Path, alter: Alter) -> None:
    """The TapeError names its address."""
    sha = sha256(b"short")
    mark = b'"sha":"' + sha.encode()
    alter(recorded, events=lambda line: b"" if mark in line else line)
    with pytest.raises(TapeError, match=sha[:12]):
        read_bodies(recorded)


def test_equal_bodies_are_stored_once(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Request and response of ten echoes are one blob."""
    with record(tape):
        for _ in range(10):
            http.post(f"{provider.url}/echo", content=b"again and again")
    with Tape.open(tape) as recorded:
        assert recorded.blobs == [sha256(b"again and again")]


def test_a_large_body_leaves_no_hole_in_the_file(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The room of 50 MB of chunks in flight is given back, and the body replays."""
    size = 50 * 1024 * 1024
    with record(tape):
        first = hashlib.sha256(http.get(f"{provider.url}/bytes/{size}").content)
    assert tape.stat().st_size < 2 * 1024 * 1024
    with replay(tape) as run:
        again = http.get(f"{provider.url}/bytes/{size}").content
    assert (len(again), hashlib.sha256(again).digest()) == (size, first.digest())
    assert run.digest == run.tape.digest

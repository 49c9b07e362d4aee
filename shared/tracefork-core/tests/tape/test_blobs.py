"""Bodies are stored once, and verified whenever they are read."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from backports import zstd

from tracefork_core import Tape, TapeError, record, replay
from tracefork_core.tape.schema import LARGEST
from tracefork_testkit import ProviderServer


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


def alter(tape: Path, sql: str, *values: object) -> None:
    db = sqlite3.connect(tape)
    assert db.execute(sql, values).rowcount == 1
    db.commit()
    db.close()


def test_one_flipped_bit_in_a_body_is_found(recorded: Path) -> None:
    """A body that is not what its address says is refused, packed or plain."""
    db = sqlite3.connect(recorded)
    rows = db.execute("SELECT id, codec, data FROM blobs").fetchall()
    db.close()
    assert {codec for _, codec, _ in rows} == {0, 1}
    for row, _, data in rows:
        for place in (0, len(data) // 2, len(data) - 1):
            flipped = bytearray(data)
            flipped[place] ^= 1
            alter(recorded, "UPDATE blobs SET data = ? WHERE id = ?", bytes(flipped), row)
            with pytest.raises(TapeError):
                read_bodies(recorded)
        alter(recorded, "UPDATE blobs SET data = ? WHERE id = ?", data, row)
    assert read_bodies(recorded) == [b"text " * 500, b"short"]


def test_a_replay_of_a_changed_body_fails(recorded: Path, http: httpx2.Client) -> None:
    """The agent never sees a changed byte, and cannot swallow the error that says so."""
    alter(recorded, "UPDATE blobs SET data = x'00' WHERE codec = 1")
    with Tape.open(recorded) as tape:
        url = tape.exchanges[0].url

    def ask() -> None:
        with replay(recorded):
            with pytest.raises(TapeError, match="does not decompress"):
                http.post(url, content=b"text " * 500)
            with suppress(TapeError):
                http.post(url, content=b"short")

    with pytest.raises(TapeError, match="does not decompress"):
        ask()


@pytest.mark.parametrize("declared", [10, 2499, 2501, LARGEST + 1, -1, 2**62])
def test_a_body_that_lies_about_its_size_is_refused(recorded: Path, declared: int) -> None:
    """A frame is unpacked to its declared size and not one byte more, and that size is bounded."""
    alter(recorded, "UPDATE blobs SET size = ? WHERE codec = 1", declared)
    with pytest.raises(TapeError, match=r"size|larger"):
        read_bodies(recorded)


def test_a_bomb_is_not_unpacked(recorded: Path) -> None:
    """A small frame of an immense body is refused at the size it declares."""
    bomb = zstd.compress(bytes(64 * 1024 * 1024))
    assert len(bomb) < 10_000
    alter(recorded, "UPDATE blobs SET data = ?, size = 2500 WHERE codec = 1", bomb)
    with pytest.raises(TapeError, match="size"):
        read_bodies(recorded)


def test_a_missing_body_is_named(recorded: Path) -> None:
    """A body that is not there is a TapeError with its address."""
    alter(recorded, "DELETE FROM blobs WHERE codec = 0")
    sha = hashlib.sha256(b"short").hexdigest()
    with pytest.raises(TapeError, match=sha[:12]):
        read_bodies(recorded)


def test_equal_bodies_are_stored_once(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Request and response of an echo, ten times over, are one blob."""
    with record(tape):
        for _ in range(10):
            http.post(f"{provider.url}/echo", content=b"again and again")
    db = sqlite3.connect(tape)
    assert db.execute("SELECT count(*) FROM blobs").fetchone() == (1,)
    db.close()


def test_a_large_body_leaves_no_hole_in_the_file(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """What 50 MB of chunks took while in flight is given back, and the body replays."""
    size = 50 * 1024 * 1024
    with record(tape):
        first = hashlib.sha256(http.get(f"{provider.url}/bytes/{size}").content)
    assert tape.stat().st_size < 2 * 1024 * 1024
    with replay(tape) as run:
        again = http.get(f"{provider.url}/bytes/{size}").content
    assert (len(again), hashlib.sha256(again).digest()) == (size, first.digest())
    assert run.digest == run.tape.digest

"""The specification of the file of threads is enough to read one."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
from backports import zstd

from tracefork_core.checkpoints.store import CheckpointFile
from tracefork_core.tape.checkpoint import Checkpoint, Value
from tracefork_core.tape.schema import THREADS_TABLES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "checkpoint-file.md"


def read(db: sqlite3.Connection, row: int) -> bytes:
    """Return the plain bytes of a value, as the page says."""
    query = "SELECT sha, size, base, pieces, data FROM bodies WHERE id = ?"
    sha, size, base, packed, data = db.execute(query, (row,)).fetchone()
    pieces = msgspec.msgpack.decode(packed) if base is not None else [[size]]
    count = sum(piece[0] for piece in pieces if len(piece) == 1)
    new = data if len(data) == count else zstd.decompress(data)
    below = read(db, base) if base is not None else b""
    plain = b""
    for piece in pieces:
        if len(piece) == 1:
            plain, new = plain + new[: piece[0]], new[piece[0] :]
        else:
            plain += below[piece[0] : piece[0] + piece[1]]
    assert (hashlib.sha256(plain).digest(), len(plain)) == (sha, size)
    return plain


def test_a_reader_written_from_the_page_reads_a_file(tmp_path: Path) -> None:
    """Each value of a thread that grows, by nothing but SQL, MessagePack and zstd."""
    store = CheckpointFile(tmp_path / "threads.tape")
    values = [b"".join(b"line %d of many; " % n for n in range(120 * k)) for k in range(1, 6)]
    for n, body in enumerate(values):
        value = Value("msgpack", hashlib.sha256(body).hexdigest())
        parent = f"{n - 1}" if n else None
        checkpoint = Checkpoint("t", "", f"{n}", value, {"said": value}, {"step": n}, parent)
        store.put(checkpoint, {value.sha: body})
    store.close()
    with closing(sqlite3.connect(tmp_path / "threads.tape")) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        assert f"| {version}: " in PAGE.read_text()
        query = "SELECT channels FROM checkpoints JOIN threads ON thread = threads.id "
        rows = db.execute(query + "WHERE name = 't' ORDER BY checkpoints.id")
        read_values = [read(db, msgspec.msgpack.decode(channels)["said"]) for (channels,) in rows]
        assert read_values == values
        ((deltas,),) = db.execute("SELECT count(*) FROM bodies WHERE base IS NOT NULL")
        assert deltas > 0


def test_the_page_has_the_tables() -> None:
    """Its SQL is that of the files."""
    found = re.findall(r"^CREATE TABLE .*$", PAGE.read_text(), re.MULTILINE)
    assert found == list(THREADS_TABLES.values())

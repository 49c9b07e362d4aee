"""The rows of a segment are packed between two commits, and none is lost or doubled."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tracefork_core import Tape, TapeError
from tracefork_core.tape import Receipt, TapeWriter
from tracefork_core.tape.environment import describe
from tracefork_core.tape.log import LogWriter

from .runs import Bodies, put, read

BODIES: list[Bodies] = [(os.urandom(9000), os.urandom(9000)) for _ in range(20)]
"""More than one segment of them."""


def rows(tape: Path) -> int:
    with closing(sqlite3.connect(tape)) as db:
        return int(db.execute("SELECT count(*) FROM log").fetchone()[0])


def once(error: BaseException) -> Callable[[LogWriter], None]:
    """Return a `pack` that is interrupted midway in its first call."""
    pack, left = LogWriter.pack, [error]

    def pack_or_fail(log: LogWriter) -> None:
        pack(log)
        if left:
            raise left.pop()

    return pack_or_fail


def test_a_full_segment_becomes_one_row(tmp_path: Path) -> None:
    """Until then there is a row for the first commit, and one for each exchange since."""
    writer = TapeWriter(tmp_path / "run.tape", describe())
    counts = []
    for n, bodies in enumerate(BODIES):
        put(writer, [bodies], first=n)
        counts.append(rows(tmp_path / "run.tape"))
    writer.abort()
    packed = counts.index(2, 1)
    assert counts == [*range(2, packed + 2), *range(2, len(BODIES) - packed + 2)]
    assert 10 < packed < 20


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk is full"), KeyboardInterrupt()])
def test_an_interrupted_packing_keeps_every_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """The rows remain; only the exchange of the interrupted commit is not on the tape."""
    monkeypatch.setattr(LogWriter, "pack", once(error))
    writer = TapeWriter(tmp_path / "run.tape", describe())
    with pytest.raises((TapeError, KeyboardInterrupt)):
        put(writer, BODIES)
    done = rows(tmp_path / "run.tape") - 1
    assert 10 < done < 20
    with Tape.open(tmp_path / "run.tape") as tape:
        landed = [one for one in tape.exchanges if one.end == "eof"]
        assert [(one.request_body, one.response_body) for one in landed] == BODIES[:done]
    # The agent may catch the interrupt and continue.
    put(writer, BODIES[done:], first=done)
    writer.close(Receipt(digest="", exchanges=0))
    assert read(tmp_path / "run.tape") == BODIES

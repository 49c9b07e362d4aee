"""A tape grows with the new bytes of a run, not with the sent bytes."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from math import log
from pathlib import Path

import pytest

from tracefork_core import Tape
from tracefork_core.tape import Receipt, TapeWriter
from tracefork_core.tape.environment import describe

from .runs import Bodies, put, read, transcript, write


def test_a_tape_grows_linearly_with_a_repeated_transcript(tmp_path: Path) -> None:
    """Four times as many steps send 16 times the bytes, and take four times the room."""
    sizes = {}
    for steps in (50, 200):
        path = tmp_path / f"{steps}.tape"
        bodies = transcript(steps)
        write(path, bodies)
        assert read(path) == bodies
        sizes[steps] = path.stat().st_size
    assert log(sizes[200] / sizes[50]) / log(4) < 1.05


def test_bodies_without_repetition_take_their_full_room(tmp_path: Path) -> None:
    """Negative control: nothing is saved if nothing is sent again."""
    noise = [(os.urandom(2000), os.urandom(2000)) for _ in range(50)]
    write(tmp_path / "noise.tape", noise)
    assert (tmp_path / "noise.tape").stat().st_size > 50 * 4000
    assert read(tmp_path / "noise.tape") == noise


def test_lanes_that_take_turns_each_continue_their_own_transcript(tmp_path: Path) -> None:
    """Shared text is found after an edited middle or a dropped start too."""
    bodies = transcript(80)
    slid = [
        (asked[:30] + asked[30 + 400 * step :], answered)
        for step, (asked, answered) in enumerate(bodies)
    ]
    write(tmp_path / "slid.tape", slid)
    assert read(tmp_path / "slid.tape") == slid
    sent = sum(len(asked) + len(answered) for asked, answered in slid)
    assert (tmp_path / "slid.tape").stat().st_size < sent / 10


def test_an_open_tape_is_as_small_as_a_closed_one(tmp_path: Path) -> None:
    """A recording that was cut off takes little more room than a complete one."""
    bodies = transcript(200)
    write(tmp_path / "closed.tape", bodies)
    writer = TapeWriter(tmp_path / "live.tape", describe())
    put(writer, bodies)
    writer.abort()
    with Tape.open(tmp_path / "live.tape") as tape:
        assert not tape.complete
    assert read(tmp_path / "live.tape") == bodies
    live = sum(file.stat().st_size for file in tmp_path.glob("live.tape*"))
    assert live < 3 * (tmp_path / "closed.tape").stat().st_size


def test_a_metadata_tape_holds_hashes_and_no_bodies(tmp_path: Path) -> None:
    """It has the digest of the run, and its bodies are in no file."""
    bodies = transcript(20)
    receipt = write(tmp_path / "m.tape", bodies, mode="metadata")
    assert receipt.digest == write(tmp_path / "s.tape", bodies).digest
    with Tape.open(tmp_path / "m.tape") as tape:
        assert tape.blobs == []
        assert tape.digest == receipt.digest
        assert not tape.exchanges[0].has_bodies
    assert (tmp_path / "m.tape").stat().st_size < (tmp_path / "s.tape").stat().st_size


@pytest.mark.parametrize("exchanges", [1, 40, 400])
def test_few_pages_of_a_closed_tape_lie_idle(tmp_path: Path, exchanges: int) -> None:
    """Packed rows leave free pages, which would be most of a small tape."""
    writer = TapeWriter(tmp_path / "run.tape", describe())
    put(writer, noise(exchanges))
    writer.close(Receipt(digest="", exchanges=0))
    free, pages = idle(tmp_path / "run.tape")
    assert free * 32 <= pages
    assert read(tmp_path / "run.tape") == noise(exchanges)


def test_a_tape_that_is_open_has_idle_pages_at_times(tmp_path: Path) -> None:
    """Negative control: packed rows leave free pages until new rows fill them."""
    writer = TapeWriter(tmp_path / "run.tape", describe())
    shares = []
    for n, bodies in enumerate(noise(400)):
        put(writer, [bodies], first=n)
        free, pages = idle(tmp_path / "run.tape")
        shares.append(free / pages)
    writer.abort()
    assert max(shares) > 1 / 32


def test_no_commit_makes_the_log_longer(tmp_path: Path) -> None:
    """A growing log makes commits a third slower, so it has its full length from the start."""
    lengths = set(lengths_of_the_log(tmp_path / "run.tape", size=200))
    assert len(lengths) == 1
    assert lengths < set(range(300_000))


def test_the_log_of_large_bodies_is_not_cut_back(tmp_path: Path) -> None:
    """Negative control: large bodies make it grow, and it keeps its length."""
    lengths = lengths_of_the_log(tmp_path / "run.tape", size=50_000)
    assert lengths[0] < 300_000
    assert min(lengths[100:]) > 2_000_000


def lengths_of_the_log(tape: Path, size: int) -> list[int]:
    """Record 200 exchanges of a size, and return the length of the log after each."""
    writer, drawn = TapeWriter(tape, describe()), random.Random(size)
    lengths = []
    for n in range(200):
        put(writer, [(drawn.randbytes(size), drawn.randbytes(size))], first=n)
        lengths.append(tape.with_name(f"{tape.name}-wal").stat().st_size)
    writer.abort()
    return lengths


def noise(exchanges: int) -> list[Bodies]:
    """Return bodies that share nothing."""
    drawn = random.Random(exchanges)
    return [(drawn.randbytes(200), drawn.randbytes(200)) for _ in range(exchanges)]


def idle(tape: Path) -> tuple[int, int]:
    """Return the number of free pages of a tape, and of all pages."""
    with closing(sqlite3.connect(tape)) as db:
        counts = [db.execute(f"PRAGMA {name}_count").fetchone()[0] for name in ("freelist", "page")]
    return counts[0], counts[1]

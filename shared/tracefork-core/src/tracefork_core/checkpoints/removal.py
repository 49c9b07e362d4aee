"""Delete checkpoints from a file of threads, without breaking the ones that stay.

A value that stays may be a delta of one that goes. Such values are stored again, with a base that
stays, before anything is deleted.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from tracefork_core.checkpoints.bodies import BodyStore
from tracefork_core.checkpoints.contract import Rests
from tracefork_core.checkpoints.rows import ROWS, channels, checkpoint_rows, thread_of
from tracefork_core.tape.checkpoint import Checkpoint

Place = tuple[str, str]
"""The ns and the id of a checkpoint of a thread."""


def delete_thread(db: sqlite3.Connection, thread: int | None) -> None:
    """Delete a thread with all its rows."""
    for query in (
        "DELETE FROM checkpoints WHERE thread = ?",
        "DELETE FROM writes WHERE thread = ?",
        "DELETE FROM bodies WHERE thread = ?",
        "DELETE FROM threads WHERE id = ?",
    ):
        db.execute(query, (thread,))


def delete_for_runs(db: sqlite3.Connection, bodies: BodyStore, runs: Sequence[str]) -> None:
    """Delete the checkpoints of these runs, and their writes."""
    query = (
        "SELECT thread, ns, id FROM checkpoints "
        "WHERE json_extract(metadata, '$.run_id') IN (SELECT value FROM json_each(?))"
    )
    doomed: dict[int, set[Place]] = defaultdict(set)
    for thread, ns, at in db.execute(query, (msgspec.json.encode(list(runs)).decode(),)):
        doomed[thread].add((ns, at))
    for thread, places in doomed.items():
        _delete(db, bodies, thread, places)


def keep_only(
    db: sqlite3.Connection, bodies: BodyStore, thread: int, kept: Collection[Place]
) -> None:
    """Delete all checkpoints and writes of a thread, except these."""
    query = (
        "SELECT ns, id FROM checkpoints WHERE thread = :thread "
        "UNION SELECT ns, id FROM writes WHERE thread = :thread"
    )
    _delete(db, bodies, thread, set(db.execute(query, {"thread": thread})) - set(kept))


def latest(
    db: sqlite3.Connection,
    thread: int,
    checkpoint: Callable[[sqlite3.Connection, Sequence[object]], Checkpoint],
    rests: Rests | None,
) -> set[Place]:
    """Return the latest checkpoint of each ns, and the ancestors that it needs."""
    kept: set[Place] = set()
    query = "SELECT ns, max(id) FROM checkpoints WHERE thread = ? GROUP BY ns"
    for ns, newest in db.execute(query, (thread,)).fetchall():
        at: str | None = newest
        wanted: set[str] | None = None
        while at is not None and (ns, at) not in kept and wanted != set():
            row = db.execute(
                f"{ROWS} WHERE threads.id = ? AND ns = ? AND checkpoints.id = ?", (thread, ns, at)
            ).fetchone()
            if row is None:
                break
            ancestor = checkpoint(db, row)
            kept.add((ns, at))
            if wanted is None:
                named = rests(ancestor) if rests is not None else ()
                wanted = set(named) if named is not None else None
            if wanted is not None:
                wanted -= ancestor.values.keys()
            at = ancestor.parent
    return kept


def copy_thread(db: sqlite3.Connection, source: str, target: str) -> None:
    """Copy all rows of one thread to another, replacing its content."""
    delete_thread(db, thread_of(db, target))
    if (thread := thread_of(db, source)) is None:
        return
    copy = thread_of(db, target, add=True)
    # All rows shift by the same number, so a delta comes after its base in the copy too. The shift
    # counts from the thread's own first row: counted from 0, it would double with every copy.
    query = (
        "SELECT coalesce(max(id) + 1 - (SELECT min(id) FROM bodies WHERE thread = ?), 0) "
        "FROM bodies"
    )
    ((shift,),) = db.execute(query, (thread,))
    moving = {"shift": shift, "copy": copy, "thread": thread}
    db.execute(
        "INSERT INTO bodies (id, thread, sha, tag, size, cost, depth, base, pieces, data) "
        "SELECT id + :shift, :copy, sha, tag, size, cost, depth, base + :shift, pieces, data "
        "FROM bodies WHERE thread = :thread",
        moving,
    )
    db.execute(
        "INSERT INTO writes (thread, ns, id, task, idx, path, channel, value) "
        "SELECT :copy, ns, id, task, idx, path, channel, value + :shift FROM writes "
        "WHERE thread = :thread",
        moving,
    )
    for ns, at, _, named in checkpoint_rows(db, thread):
        moved = {channel: body + shift for channel, body in channels(named).items()}
        db.execute(
            "INSERT INTO checkpoints (thread, ns, id, parent, made, head, channels, metadata) "
            "SELECT ?, ns, id, parent, made, head + ?, ?, metadata FROM checkpoints "
            "WHERE thread = ? AND ns = ? AND id = ?",
            (copy, shift, msgspec.msgpack.encode(moved), thread, ns, at),
        )


def _delete(
    db: sqlite3.Connection, bodies: BodyStore, thread: int, doomed: Iterable[Place]
) -> None:
    for ns, at in doomed:
        for query in (
            "DELETE FROM checkpoints WHERE thread = ? AND ns = ? AND id = ?",
            "DELETE FROM writes WHERE thread = ? AND ns = ? AND id = ?",
        ):
            db.execute(query, (thread, ns, at))
    named = set(_named(db, thread))
    if not named:
        delete_thread(db, thread)
        return
    bases = dict(db.execute("SELECT id, base FROM bodies WHERE thread = ?", (thread,)))
    for body in sorted(named & bases.keys()):
        base = bases[body]
        if base is not None and base not in named:
            bodies.rebase(db, thread, body, _living(base, bases, named))
    for body in bases.keys() - named:
        db.execute("DELETE FROM bodies WHERE id = ?", (body,))


def _named(db: sqlite3.Connection, thread: int) -> Iterator[int]:
    """Yield the rows of values that checkpoints and writes of a thread use."""
    for _, _, head, named in checkpoint_rows(db, thread):
        yield head
        yield from channels(named).values()
    for (value,) in db.execute("SELECT value FROM writes WHERE thread = ?", (thread,)):
        yield value


def _living(base: int, bases: dict[int, int | None], named: Collection[int]) -> int | None:
    """Return the nearest base of a value that stays."""
    below: int | None = base
    while below is not None and below not in named:
        further = bases.get(below)
        below = further if further is not None and further < below else None
    return below

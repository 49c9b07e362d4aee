"""The tables of every file that we make, as SQLite holds them: word for word."""

from __future__ import annotations

TAPE = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "log": (
        "CREATE TABLE log (seq INTEGER PRIMARY KEY, segment INTEGER NOT NULL, "
        "crc INTEGER NOT NULL, events BLOB NOT NULL, bodies BLOB NOT NULL)"
    ),
}

THREADS = {
    "threads": "CREATE TABLE threads (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "checkpoints": (
        "CREATE TABLE checkpoints (thread INTEGER NOT NULL, ns TEXT NOT NULL, id TEXT NOT NULL, "
        "parent TEXT, made INTEGER NOT NULL, head INTEGER NOT NULL, channels BLOB NOT NULL, "
        "metadata TEXT NOT NULL, PRIMARY KEY (thread, ns, id)) WITHOUT ROWID"
    ),
    "writes": (
        "CREATE TABLE writes (thread INTEGER NOT NULL, ns TEXT NOT NULL, id TEXT NOT NULL, "
        "task TEXT NOT NULL, idx INTEGER NOT NULL, path TEXT NOT NULL, channel TEXT NOT NULL, "
        "value INTEGER NOT NULL, PRIMARY KEY (thread, ns, id, task, idx)) WITHOUT ROWID"
    ),
    "bodies": (
        "CREATE TABLE bodies (id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, sha BLOB NOT NULL, "
        "tag TEXT NOT NULL, size INTEGER NOT NULL, cost INTEGER NOT NULL, depth INTEGER NOT NULL, "
        "base INTEGER, pieces BLOB, data BLOB, UNIQUE (thread, sha, tag))"
    ),
}
"""The tables of a file of threads: what a checkpointer keeps every day, and no recording."""

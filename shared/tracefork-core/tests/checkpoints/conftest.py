"""Helpers that store threads of checkpoints as an adapter does."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from tracefork_core.checkpoints.store import CheckpointFile
from tracefork_core.tape.checkpoint import Checkpoint, Value, Write
from tracefork_core.tape.digest import sha256


def value(body: bytes) -> Value:
    """Return a value with these bytes."""
    return Value("msgpack", sha256(body))


def put(
    store: CheckpointFile,
    at: str,
    parent: str | None = None,
    *,
    thread: str = "t",
    ns: str = "",
    metadata: dict[str, object] | None = None,
    **values: bytes,
) -> Checkpoint:
    """Put a checkpoint and return it."""
    head = f"head of {thread}/{at}".encode()
    checkpoint = Checkpoint(
        *(thread, ns, at, value(head)),
        {name: value(body) for name, body in values.items()},
        metadata or {},
        parent,
    )
    store.put(checkpoint, {value(body).sha: body for body in (head, *values.values())})
    return checkpoint


def write(
    store: CheckpointFile,
    at: str,
    body: bytes,
    *,
    task: str = "task",
    idx: int = 0,
    path: str = "",
    thread: str = "t",
) -> None:
    """Put one write after a checkpoint."""
    one = Write(thread, "", at, task, idx, "said", value(body), path)
    store.put_writes([one], {value(body).sha: body})


def body_of(store: CheckpointFile, at: str, name: str, thread: str = "t") -> bytes:
    """Return the bytes of a value of a checkpoint."""
    found = store.find(thread, "", at)
    assert found is not None
    return store.body(thread, found.values[name])


def transcript(steps: int, size: int = 400, seed: int = 0) -> list[bytes]:
    """Return the values of a growing list of messages, as MessagePack."""
    words = random.Random(seed)
    messages: list[dict[str, object]] = []
    values = []
    for step in range(steps):
        text = "".join(words.choices("abcdefghij klmnop", k=size))
        messages.append({"content": text, "type": "ai", "tool_calls": [], "id": f"m{step}"})
        values.append(msgspec.msgpack.encode(messages))
    return values


def grow(store: CheckpointFile, values: list[bytes], thread: str = "t") -> None:
    """Put a series of checkpoints with one growing value."""
    parent = None
    for step, body in enumerate(values):
        put(store, f"{step:04}", parent, thread=thread, messages=body)
        parent = f"{step:04}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of the file."""
    return tmp_path / "threads.tape"


@pytest.fixture
def store(path: Path) -> CheckpointFile:
    """Return a store on a file that does not exist yet."""
    return CheckpointFile(path)

"""What a run reads of a storage by keys is on the tape; a fork reads what it has written itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Replace, fork, record, replay, tool
from tracefork_core.adapters import Patches, State, Stored, put_in_front


class MissingError(Exception):
    """What the storage raises for a key that it does not have."""


class Shelf:
    """A storage that outlives the run."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    def read(self, key: str) -> str:
        """Return a row."""
        if key not in self.rows:
            raise MissingError(key)
        return self.rows[key]

    async def aread(self, key: str) -> str:
        """Return a row in async code."""
        return self.read(key)

    def write(self, key: str, row: str) -> None:
        """Write a row."""
        self.rows[key] = row

    async def awrite(self, key: str, row: str) -> None:
        """Write a row in async code."""
        self.write(key, row)


class StandIn:
    """The shelf as one session sees it."""

    def __init__(self, _: Shelf, state: State) -> None:
        self._stored = Stored(state, MissingError)
        self._written: dict[str, str] = {}

    def _options(self, key: str) -> dict[str, Any]:
        return {"ours": partial(self._written.get, key), "is_written": key in self._written}

    def read(self, own: Any, key: str) -> Any:
        return self._stored.read(f"read {key}", partial(own, key), **self._options(key))

    async def aread(self, own: Any, key: str) -> Any:
        return await self._stored.aread(f"read {key}", partial(own, key), **self._options(key))

    def write(self, own: Any, key: str, row: str) -> None:
        self._stored.write(f"write {key}", partial(own, key, row))
        self._written[key] = row

    async def awrite(self, own: Any, key: str, row: str) -> None:
        await self._stored.awrite(f"write {key}", partial(own, key, row))
        self._written[key] = row


@pytest.fixture(autouse=True)
def _stand_ins() -> Iterator[None]:
    patches = Patches()
    put_in_front(patches, Shelf, ("read", "aread", "write", "awrite"), StandIn)
    yield
    patches.undo()


async def read(shelf: Shelf, key: str, *, later: bool) -> str:
    """Return a row, or the error of the storage."""
    try:
        return await shelf.aread(key) if later else shelf.read(key)
    except MissingError as error:
        return f"no {error}"


@tool
def named() -> str:
    return "new"


async def program(shelf: Shelf, *, later: bool) -> list[str]:
    """Read a row, write one that a tool says, and read that and a missing one."""
    before = await read(shelf, "old", later=later)
    row = named()
    if later:
        await shelf.awrite("mine", row)
    else:
        shelf.write("mine", row)
    return [before, await read(shelf, "mine", later=later), await read(shelf, "none", later=later)]


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
async def test_a_replay_and_a_fork_leave_the_storage_alone(tape: Path, *, later: bool) -> None:
    """They read what the recording read, and the fork reads its own row where it wrote another."""
    shelf = Shelf()
    shelf.rows["old"] = "there"
    with record(tape):
        assert await program(shelf, later=later) == ["there", "new", "no none"]
    shelf.rows = {"old": "changed"}
    with replay(tape):
        assert await program(shelf, later=later) == ["there", "new", "no none"]
    with fork(tape, 0, Replace(document="other"), to=tape.with_name("fork")):
        assert await program(shelf, later=later) == ["there", "other", "no none"]
    assert shelf.rows == {"old": "changed"}

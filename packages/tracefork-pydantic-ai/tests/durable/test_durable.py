"""Agents of durable engines: an engine that knows the run answers before the tape is asked.

At night (`tox -e parcels`): an engine takes long to start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracefork_testkit import ProviderServer

PROGRAM = Path(__file__).with_name("program.py")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(server: ProviderServer, tape: Path, tmp_path: Path) -> Run:
    """Record or replay the program: `run("dbos", "record", "first", "whole")`."""
    own = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1"}

    def ran(engine: str, mode: str, database: str, covers: str) -> tuple[int, str, str]:
        words = [engine, mode, str(tape), str(tmp_path / database), covers]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(PROGRAM), *words],
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return ran


def test_an_engine_with_a_database_of_its_own_replays(run: Run, server: Any) -> None:
    """DBOS draws the recorded ids, and its new database knows none of them."""
    status, recorded, error = run("dbos", "record", "first", "whole")
    assert status == 0, error
    server.stop()
    status, again, error = run("dbos", "replay", "second", "whole")
    assert status == 0, error
    tool, _, messages = recorded.partition("\n")
    assert tool == "the tool ran"
    assert again == messages


def test_an_engine_that_knows_the_run_does_not_ask_again(run: Run) -> None:
    """The control: DBOS finds the recorded workflow by its id, and its results in the database."""
    status, _, error = run("dbos", "record", "first", "whole")
    assert status == 0, error
    status, _, error = run("dbos", "replay", "first", "whole")
    assert status != 0
    assert "DivergenceError" in error
    assert "were never asked for" in error


@pytest.mark.parametrize("engine", ["dbos", "prefect"])
def test_an_attached_agent_replays_in_the_same_database(engine: str, run: Run, server: Any) -> None:
    """The ids of the engine are not on the tape, so each replay is a workflow of its own."""
    status, recorded, error = run(engine, "record", "first", "attached")
    assert status == 0, error
    server.stop()
    status, again, error = run(engine, "replay", "first", "attached")
    assert status == 0, error
    assert "the tool ran" in recorded
    assert "the tool ran" not in again
    assert "It is sunny." in again

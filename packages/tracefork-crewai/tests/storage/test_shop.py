"""What CrewAI stores between runs is on the tape: a replay, a fork and a blame leave it alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_core.blaming.engine.probe import Settings
from tracefork_crewai import (
    crew_checkpoints,
    flow_states,
    knowledge_storage,
    memory_storage,
    task_outputs,
    trained_agents,
)

from . import shop

# Chroma warns of keys in a configuration.
pytestmark = pytest.mark.filterwarnings(r"ignore::DeprecationWarning:chromadb\..*")

Stored = Callable[[], dict[str, str]]
OFF = (
    flow_states,
    task_outputs,
    knowledge_storage,
    memory_storage,
    crew_checkpoints,
    trained_agents,
)


@pytest.fixture
def recorded(home: Path, url: str, tape: Path) -> list[object]:
    """What the second run returned, which is recorded: the first one has filled the storages."""
    assert shop.take_order(url) == ["It is good.", 1]
    with tracefork.record(tape):
        made = shop.take_order(url)
    assert made == ["It is bad.", 2]
    return made


@pytest.mark.many_processes
def test_replays_in_another_process_leave_each_byte_as_it_is(
    recorded: list[object], stored: Stored, home: Path, url: str, tape: Path
) -> None:
    """Ten of them, and each returns what the recording returned."""
    before = stored()
    assert {Path(path).name for path in before} >= {
        "chroma.sqlite3",
        "flow_states.db",
        "latest_kickoff_task_outputs.db",
        "memories.lance",
    }
    command = [sys.executable, shop.__file__, url, str(tape), "10"]
    run = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    said = [line for line in run.stdout.splitlines() if line.startswith("MADE ")]
    assert said, run.stderr[-2000:]
    assert json.loads(said[0].removeprefix("MADE ")) == [recorded] * 10
    assert stored() == before


def test_a_fork_finds_what_earlier_runs_stored_and_leaves_it_as_it_is(
    recorded: list[object], stored: Stored, clerk: Any, url: str, tape: Path
) -> None:
    """Its prompts hold the state, the memory and the knowledge, also where the storage is gone."""
    prompt = clerk.prompts[1]
    for part in ("order 2", "likes blue", "30 days"):
        assert part in prompt
    before = stored()
    with tracefork.Tape.open(tape) as opened:
        recall = next(it.n for it in opened.exchanges if it.url == "tool:memory.recall")
    for _ in range(2):
        del clerk.prompts[:]
        with tracefork.fork(tape, at=recall, overwrite=True) as branch:
            assert shop.take_order(url) == ["It is good.", 2]
        assert clerk.prompts == [prompt]
        with tracefork.replay(branch.path):
            assert shop.take_order(url) == ["It is good.", 2]
        assert stored() == before
        shutil.rmtree("storage", ignore_errors=True)
        before = stored()


def test_a_replay_reads_as_recorded_where_the_storage_has_changed(
    recorded: list[object], stored: Stored, url: str, tape: Path
) -> None:
    """First another run has come in between, then all files are gone; a replay makes none."""
    shop.take_order(url)
    for _ in range(2):
        before = stored()
        with tracefork.replay(tape):
            assert shop.take_order(url) == recorded
        assert stored() == before
        shutil.rmtree("storage", ignore_errors=True)


@pytest.mark.many_processes
def test_a_blame_leaves_each_byte_as_it_is(
    home: Path, stored: Stored, url: str, tape: Path
) -> None:
    """Its forks begin where the recording began, not where the fork before them ended."""
    shop.take_order(url, knows=False)
    with tracefork.record(tape):
        assert shop.take_order(url, knows=False) == ["It is bad.", 2]
    before, seen = stored(), []

    def is_good(made: Any) -> bool:
        seen.append(made[1])
        return "good" in str(made[0])

    report = tracefork.blame(
        tape, lambda: shop.take_order(url, knows=False), is_good, settings=Settings(level=1e-4)
    )
    assert stored() == before
    assert (len(seen) >= 50, set(seen)) == (True, {2})
    assert report.result.verdict.units == (0,)


def test_without_the_stand_ins_a_replay_writes_and_diverges(
    recorded: list[object], stored: Stored, url: str, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the flow reads the state that the recording left."""
    for module in OFF:
        monkeypatch.setattr(module, "put_in", lambda _: None)
    monkeypatch.setattr(memory_storage, "_storage_of", memory_storage._own)
    before = stored()
    with pytest.raises(tracefork.DivergenceError, match=r"Take order 2"), tracefork.replay(tape):
        shop.take_order(url)
    changed = {path for path, sha in stored().items() if before.get(path) != sha}
    assert any(path.startswith("storage/memory") for path in changed)

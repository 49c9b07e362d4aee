"""Outputs of tasks, checkpoints and trained agents are read as recorded, and never replaced."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crewai.state.checkpoint_config import CheckpointConfig
from crewai.state.provider.json_provider import JsonProvider
from crewai.state.provider.sqlite_provider import SqliteProvider
from crewai.utilities.constants import TRAINING_DATA_FILE
from crewai.utilities.training_handler import CrewTrainingHandler

import tracefork_core as tracefork

Stored = Callable[[], dict[str, str]]


def test_a_crew_that_replays_a_task_replays(
    home: Path, crew: Any, stored: Stored, clerk: Any, tape: Path
) -> None:
    """CrewAI's own `replay` continues from stored outputs, which the next kickoff replaces."""

    def make() -> Any:
        return crew(first="Current Task: Take order 1.", last="Current Task: Take order 2.")

    recorded_crew = make()
    recorded_crew.kickoff()
    last = str(recorded_crew.tasks[1].id)

    def run() -> Any:
        made = make()
        said = made.replay(last).raw
        rows = made._task_output_handler.load()
        return said, [(row["output"]["raw"], bool(row["was_replayed"])) for row in rows]

    with tracefork.record(tape):
        recorded = run()
    assert recorded[1] == [("It is good.", False), ("It is good.", True)]
    make().kickoff()
    before = stored()
    with tracefork.replay(tape):
        assert run() == recorded
    assert stored() == before


@pytest.mark.parametrize(
    "kind",
    [
        JsonProvider,
        pytest.param(
            SqliteProvider,
            marks=pytest.mark.skipif(
                sqlite3.sqlite_version_info < (3, 45), reason="this SQLite has no jsonb"
            ),
        ),
    ],
)
async def test_checkpoints_are_read_as_recorded_and_made_in_memory(
    kind: Any, home: Path, stored: Stored, tape: Path
) -> None:
    """Of an earlier run, and of this one, whose places are those of the recording."""
    earlier = kind().checkpoint('{"n": 1}', "checkpoints")

    async def run() -> list[Any]:
        storage = kind()
        place = storage.checkpoint('{"n": 2}', "checkpoints", parent_id="x", branch="b")
        other = await storage.acheckpoint('{"n": 3}', "checkpoints")
        read = [
            json.loads(storage.from_checkpoint(earlier)),
            json.loads(await storage.afrom_checkpoint(earlier)),
            json.loads(storage.from_checkpoint(place)),
            json.loads(await storage.afrom_checkpoint(other)),
        ]
        return [place, other, storage.extract_id(place), *read]

    with tracefork.record(tape):
        recorded = await run()
    assert recorded[3:] == [{"n": 1}, {"n": 1}, {"n": 2}, {"n": 3}]
    before = stored()
    with tracefork.replay(tape):
        assert await run() == recorded
        assert kind().prune("checkpoints", 0) == 0
        assert kind().checkpoint("{}", "checkpoints") not in recorded
    assert stored() == before


def test_a_crew_with_checkpoints_replays(home: Path, crew: Any, stored: Stored, tape: Path) -> None:
    """The recording makes one for its task, the replay none."""

    def run() -> str:
        config = CheckpointConfig(location="checkpoints", on_events=["task_completed"])
        made = crew(take="Current Task: Take order 1.", options_={"checkpoint": config})
        return str(made.kickoff().raw)

    with tracefork.record(tape):
        recorded = run()
    before = stored()
    assert [path for path in before if path.endswith(".json")]
    with tracefork.replay(tape):
        assert run() == recorded
    assert stored() == before


def test_trained_agents_are_read_as_recorded(home: Path, stored: Stored, tape: Path) -> None:
    """Also where the file holds other data by then, or is gone. Nothing of it is unpickled."""
    trained = CrewTrainingHandler(TRAINING_DATA_FILE)
    trained.save({"Clerk": {1: {"human_feedback": "Shorter."}}})

    def run() -> list[Any]:
        handler = CrewTrainingHandler(TRAINING_DATA_FILE)
        read = [handler.load(), CrewTrainingHandler("none").load()]
        handler.append(2, "Clerk", {"human_feedback": "Longer."})
        return [*read, handler.load()]

    with tracefork.record(tape):
        recorded = run()
    assert recorded[2]["Clerk"] == {
        1: {"human_feedback": "Shorter."},
        2: {"human_feedback": "Longer."},
    }
    Path(trained.file_path).write_bytes(pickle.dumps({"Clerk": {}})[:-1])
    before = stored()
    with tracefork.replay(tape):
        assert run() == recorded
    assert stored() == before
    Path(trained.file_path).unlink()
    with tracefork.replay(tape):
        assert run() == recorded
    assert stored() == {}

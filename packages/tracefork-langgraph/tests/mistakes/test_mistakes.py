"""Mistakes with graphs and their threads: `golden.txt` holds the error of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

import tracefork_core as tracefork
from tracefork_core.cli.main import main
from tracefork_langgraph import TapeSaver, attach, rerun
from tracefork_testkit.golden import Mistake, hold_to, refused

GOLDEN = Path(__file__).with_name("golden.txt")
CONFIG: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


def builder() -> Any:
    """Return a graph that is not compiled."""
    return StateGraph(MessagesState).add_node("desk", lambda state: {}).add_edge(START, "desk")


def attach_to_a_builder(here: Path) -> None:
    attach(builder())


def attach_to_a_number(here: Path) -> None:
    attach(3)


def a_saver_in_memory(here: Path) -> None:
    TapeSaver(":memory:")


def a_saver_in_a_folder(here: Path) -> None:
    TapeSaver(here).get_tuple(CONFIG)


def a_saver_in_another_file(here: Path) -> None:
    (here / "notes.tape").write_text("notes")
    TapeSaver(here / "notes.tape").get_tuple(CONFIG)


def a_saver_in_a_finished_tape(here: Path) -> None:
    with tracefork.record(here / "run.tape"):
        pass
    graph = builder().compile(checkpointer=TapeSaver(here / "run.tape"))
    graph.invoke({"messages": []}, CONFIG)


def a_rerun_outside_of_a_replay(here: Path) -> None:
    rerun(builder().compile())


def a_rerun_of_a_tape_without_checkpoints(here: Path) -> None:
    with tracefork.record(here / "run.tape"):
        pass
    with tracefork.replay(here / "run.tape"):
        rerun(builder().compile())


MISTAKES: list[Mistake] = [
    attach_to_a_builder,
    attach_to_a_number,
    a_saver_in_memory,
    a_saver_in_a_folder,
    a_saver_in_another_file,
    a_saver_in_a_finished_tape,
    a_rerun_outside_of_a_replay,
    a_rerun_of_a_tape_without_checkpoints,
]
IMPORTS = {"gone.db": None, "notes.db": b"notes", "empty.db": b""}


def test_each_mistake_has_the_error_in_the_golden_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In Python it is an error of tracefork; for a command it is an exit code."""
    told = [refused(mistake, tmp_path) for mistake in MISTAKES]
    monkeypatch.chdir(tmp_path)
    for name, data in IMPORTS.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        words = ["import", "--langgraph-sqlite", name, "-o", "new.tape"]
        code = main(words)
        said = capsys.readouterr().err.replace(str(tmp_path), "HERE")
        told.append(f"$ tracefork {' '.join(words)}\n{said}exit {code}\n")
        assert not (tmp_path / "new.tape").exists()
    hold_to(GOLDEN, "\n".join(told))

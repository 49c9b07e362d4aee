"""Mistakes with crews and their projects: `golden.txt` holds the one-sentence error of each."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracefork_core as tracefork
import tracefork_crewai
from tracefork_core.cli.main import main
from tracefork_testkit.golden import Mistake, hold_to, refused

GOLDEN = Path(__file__).with_name("golden.txt")


def attach_to_a_number(here: Path) -> None:
    tracefork_crewai.attach(3)


def leave_a_number_live(here: Path) -> None:
    tracefork_crewai.leave_live(3)


def a_fork_of_no_task(here: Path) -> None:
    with tracefork.record(here / "run.tape"):
        pass
    with tracefork_crewai.fork(here / "run.tape", "research"):
        pass


MISTAKES: list[Mistake] = [
    attach_to_a_number,
    leave_a_number_live,
    a_fork_of_no_task,
]
PROJECTS = {
    "no-project": None,
    "no-script": '[tool.crewai]\ntype = "crew"\n',
    "no-toml": "[tool.crewai\n",
}


def test_mistakes_are_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python raises an error of ours; a command prints it and exits with its code."""
    told = [refused(mistake, tmp_path) for mistake in MISTAKES]
    monkeypatch.chdir(tmp_path)
    for name, document in PROJECTS.items():
        (tmp_path / name).mkdir()
        if document is not None:
            (tmp_path / name / "pyproject.toml").write_text(document)
        code = main(["record", name])
        said = capsys.readouterr().err.replace(str(tmp_path), "HERE")
        told.append(f"$ tracefork record {name}\n{said}exit {code}\n")
    assert not list(tmp_path.glob("*.tape"))
    hold_to(GOLDEN, "\n".join(told))

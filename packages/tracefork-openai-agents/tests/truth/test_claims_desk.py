"""Blame names the agent and the step of each fault that is planted in the claims desk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tracefork_core as tracefork

from ..claims import FAULTS, READS, claims


@pytest.mark.parametrize("fault", FAULTS)
def test_blame_names_the_agent_and_the_step(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single step is named for sure. Only forks that may make no live call lack an outcome."""
    with claims(tmp_path, monkeypatch) as desk:
        tape = desk.record(fault)
        report = tracefork.blame(
            tape, desk.desk.run, desk.desk.is_right, by="agent", reads=READS, writes="allow"
        )
    assert report.result.verdict.kind == "single"
    assert report.parts[0].is_named
    assert report.parts[0].part.step[-1] == FAULTS[fault][0]
    (unit,) = report.result.verdict.units
    assert report.units[unit].step[-len(FAULTS[fault]) :] == FAULTS[fault]
    journal = (tape.with_suffix(".tape.blame") / "journal.jsonl").read_text().splitlines()
    trials = [line["trial"] for line in map(json.loads, journal) if "trial" in line]
    undefined = [trial["undefined"] for trial in trials if trial["undefined"]]
    assert [why for why in undefined if "wanted more than 0 live calls" not in why] == []


def test_the_command_line_names_the_same_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its forks run in processes of their own, which count the chances of the fault together."""
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    with claims(tmp_path, monkeypatch) as desk:
        desk.record("handoff")
        words = ["--by", "agent", "--oracle", "desk:is_right", "--agent", "desk:run"]
        allowed = [word for name in READS for word in ("--reads", name)]
        printed = subprocess.run(
            [
                *(
                    str(Path(sys.executable).with_name("tracefork")),
                    "blame",
                    "handoff.tape",
                    "--yes",
                ),
                *(*words, *allowed, "--allow-writes"),
            ],
            check=True,
            capture_output=True,
            text=True,
            timeout=900,
        ).stdout
    assert "● Triage" in printed

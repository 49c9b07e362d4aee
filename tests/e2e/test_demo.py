"""The main job, as a newcomer runs it: `tracefork demo` with the real LangGraph agent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.with_langgraph


def test_the_demo_tells_its_whole_story(tmp_path: Path) -> None:
    """A run is recorded, replayed with the provider gone, caught at a changed byte, and repaired.

    Blame names the one step of six that made the run fail; a fork that repairs it ends well.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tracefork_core.cli.main", "demo", "--dir", "tour", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout)["steps"]
    assert [step["exit"] for step in steps] == [0, 0, 0, 1, 0, 0]
    record, replay, show, diverge, blame, repair = steps
    answer = record["output"].split("●")[0]
    assert len(answer) > 80, "the agent says nothing a person would read"
    assert replay["output"].startswith(answer), "the replayed agent said something else"
    assert "bit-exact" in replay["output"]
    assert "0 sockets" in replay["output"]
    assert show["output"].count("model ▸ ChatOpenAI") == 3
    assert "(3 gpt-5-mini, 3 tool)" in show["output"]
    assert "ran in your process" not in show["output"]
    assert "/messages/0/content" in diverge["output"]
    assert "we send you another one" not in answer
    verdict = " ".join(blame["output"].split())
    assert "● Exchange 3 (support ▸ model ▸ ChatOpenAI → search_policy(" in verdict
    assert ") made the run fail: with it kept, 100 % of runs fail" in verdict
    assert "controls passed: replay, placebo, null step, drift" in verdict
    assert "we send you another one" in repair["output"]
    assert "3 replayed · 3 live" in repair["output"]

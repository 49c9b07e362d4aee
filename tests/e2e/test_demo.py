"""The main job, as a newcomer runs it: `tracefork demo` with the real LangGraph agent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_the_demo_tells_its_whole_story(tmp_path: Path) -> None:
    """A streamed run is recorded, replayed with the provider gone, and one byte diverges."""
    done = subprocess.run(
        [sys.executable, "-m", "tracefork_core.cli.main", "demo", "--dir", "tour", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    record, replay, show, diverge = json.loads(done.stdout)["steps"]
    assert [step["exit"] for step in (record, replay, show, diverge)] == [0, 0, 0, 1]
    answer = record["output"].split("●")[0]
    assert len(answer) > 80, "the agent says nothing a person would read"
    assert replay["output"].startswith(answer), "the replayed agent said something else"
    assert "bit-exact" in replay["output"]
    assert "0 sockets" in replay["output"]
    assert show["output"].count("support ▸ model ▸ ChatOpenAI") == 3
    assert "/messages/0/content" in diverge["output"]

"""What the guide to races shows works: its file is written and its commands run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tracefork_testkit import ModelRequest, ProviderServer, Reply

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "hunt-a-race.md"
_FENCE = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FIGURES = re.compile(r"\d+ of \d+ orders|\d+ orders?|\d+ runs|\d+\.\d+ s")
"""What depends on how many orders were tried, and on the machine."""
ANSWERS = {"price": ("9 euros", 0.02), "stock": ("plenty", 0.1), "delivery": ("tomorrow", 0.2)}


def answer(request: ModelRequest) -> Reply:
    text, delay = ANSWERS.get(request.last_user_text, ("9 euros, in stock.", 0.0))
    return Reply(text, delay=delay)


def test_a_race_is_found_as_the_guide_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command prints what the page shows, line by line; with fewer orders, to be quicker."""
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    blocks = _FENCE.findall(PAGE.read_text())
    ((agent,)) = [text for _, title, text in blocks if title == "agent.py"]
    Path("agent.py").write_text(agent)
    ends: list[int] = []
    with ProviderServer(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        shown = "".join(text for kind, _, text in blocks if kind == "console")
        for part in shown.split("$ ")[1:]:
            command, _, expected = part.partition("\n")
            quicker = command.replace("race shop", "race --seeds 2 shop")
            own = quicker.replace("tracefork ", f"{sys.executable} -m tracefork_core.cli.main ", 1)
            done = subprocess.run(
                own, shell=True, env=os.environ, capture_output=True, text=True, check=False
            )
            told = lines(done.stderr + done.stdout)
            assert [line for line in lines(expected) if line not in told] == [], told
            ends.append(done.returncode)
    assert ends == [0, 1, 1, 0, 0, 0]


def lines(text: str) -> list[str]:
    """Return the lines without their figures."""
    return _FIGURES.sub("N", text).splitlines()

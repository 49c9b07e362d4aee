"""What the guides show works: their files are written and their commands run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tracefork_testkit import ProviderServer

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "find-what-does-not-repeat.md"
_FENCE = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FIGURES = re.compile(r"·.*live.*|.*  then  .*|\s*─+$", re.MULTILINE)
"""Lines that hold figures and addresses of one run."""


def test_calibration_finds_what_the_guide_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command says what the page shows, line by line, and the last ones end well."""
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    blocks = _FENCE.findall(PAGE.read_text())
    (agent,) = (text for kind, title, text in blocks if title == "agent.py")
    Path("agent.py").write_text(agent)
    with ProviderServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        shown = [text for kind, _, text in blocks if kind == "console"]
        for command, expected in (step for text in shown for step in steps(text)):
            own = command.replace("tracefork ", f"{sys.executable} -m tracefork_core.cli.main ", 1)
            done = subprocess.run(
                own, shell=True, env=os.environ, capture_output=True, text=True, check=False
            )
            told = words(done.stderr + done.stdout)
            assert [line for line in words(expected) if line not in told] == [], done.stderr
    (example,) = (text for kind, title, text in blocks if kind == "python" and not title)
    exec(compile(example, str(PAGE), "exec"), {"__name__": "guide"})


def steps(text: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with what it is shown to print."""
    found = [part.partition("\n") for part in text.split("$ ")[1:]]
    return [(command, output) for command, _, output in found]


def words(text: str) -> list[list[str]]:
    """Return the words of each line that is the same in every run."""
    return [line.split() for line in _FIGURES.sub("", text).splitlines() if line.strip()]

"""The first ten minutes: what the tutorial says comes true, up to a script of the reader's own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs.pages import ROOT, blocks, follow


def test_the_first_ten_minutes(tmp_path: Path) -> None:
    """Each command prints what is shown; a script of one's own is blamed at the end."""
    typed = follow("docs/tutorial/first-tape.md", tmp_path)
    commands = [command.partition(" ")[2] for command, _ in typed if "mine" in command]
    assert [command.split()[0] for command in commands] == ["record", "replay", "blame", "fork"]


@pytest.mark.parametrize("page", ["first-tape.md", "debug-a-langgraph-run.md"])
def test_its_test_runs_in_a_folder_of_the_repository(tmp_path: Path, page: str) -> None:
    """Where its settings hold, and the plugins that they name are not installed."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    folder = tmp_path / "own"
    folder.mkdir()
    folder.joinpath("test_own.py").write_text("def test_nothing():\n    pass\n")

    def status() -> int:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:asyncio", "test_own.py"]
        return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode

    assert status() != 0  # Negative control.
    for block in blocks(f"docs/tutorial/{page}"):
        for command, _ in block.steps if block.kind == "console" else ():
            if command.startswith("touch "):
                subprocess.run(command.split(), cwd=folder, check=True)
    assert status() == 0

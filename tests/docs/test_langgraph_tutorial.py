"""The tutorial on a failed LangGraph run works as written, with the example it uses."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tracefork_testkit import ProviderServer

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial" / "debug-a-langgraph-run.md"
_FENCE = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EDITED = "desk.py"


def test_the_tutorial_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command prints what the page shows after it; with the old prompt the test fails."""
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    for file in (ROOT / "examples" / "refund_desk").glob("*.py"):
        shutil.copy(file, tmp_path)
    before = Path(_EDITED).read_text()
    with ProviderServer(_model()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        shown: list[tuple[str, str]] = []
        for kind, title, text in _FENCE.findall(TUTORIAL.read_text()):
            if title == _EDITED:
                Path(title).write_text(_with_line(before, text))
            elif title:
                Path(title).write_text(text)
            elif kind == "text":
                command, printed = shown[-1]
                assert " ".join(text.split()) in " ".join(printed.split()), command
            for line in text.splitlines() if kind == "console" else ():
                if "pytest" in line and "pip" not in line:
                    server.stop()
                if (done := _run(line)) is not None:
                    assert done.returncode == 0, done.stderr
                    shown.append((line, done.stdout))
    assert len(shown) == 5
    Path(_EDITED).write_text(before)
    changed_back = _run(shown[-1][0])
    assert changed_back is not None
    assert changed_back.returncode == 1
    assert "/messages/0/content" in changed_back.stdout


def _model() -> Any:
    """Return the model that the example's provider plays."""
    spec = importlib.util.spec_from_file_location("provider", "provider.py")
    assert spec is not None
    assert spec.loader is not None
    provider = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path.cwd()))
    try:
        spec.loader.exec_module(provider)
    finally:
        sys.path.pop(0)
    return provider.Model()


def _with_line(source: str, line: str) -> str:
    """Return a source with the line that gives a name its value changed."""
    name = line.partition(" = ")[0]
    changed, count = re.subn(rf"^{name} = .*$", line.strip(), source, flags=re.MULTILINE)
    assert count == 1
    return changed


def _run(line: str) -> subprocess.CompletedProcess[str] | None:
    """Run a command of the page; None where it sets up what a test has already."""
    command = line.removeprefix("$ .venv/bin/")
    own = {"tracefork": f"{sys.executable} -m tracefork_core.cli.main", "python": sys.executable}
    name = command.partition(" ")[0]
    if command == line or name not in own or command.endswith(" provider.py"):
        return None
    return subprocess.run(
        command.replace(name, own[name], 1),
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ.copy(),
    )

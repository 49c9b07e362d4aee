"""The documents are true: their examples run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tracefork_testkit import ProviderServer

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fences(path: Path, language: str) -> Iterator[tuple[str | None, str]]:
    """Yield (title, text) of each fenced block of a language."""
    for found in _FENCE.finditer(path.read_text()):
        if found[1] == language:
            yield found[2], found[3]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield server


def test_the_readme_example_runs(
    provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python block of the README records and replays as it says."""
    monkeypatch.chdir(tmp_path)
    example = next(text for _, text in fences(ROOT / "README.md", "python") if "record(" in text)
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    assert len(provider.requests) == 1, "the replay asked the provider again"


def test_what_the_readme_does_with_a_tape_works(
    provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of the README that takes the tape of its example ends well, in its order."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    example = next(text for _, text in fences(ROOT / "README.md", "python") if "record(" in text)
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    Path("inbox").mkdir()
    Path(".ssh").mkdir()
    key = Ed25519PrivateKey.generate()
    kind = (Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    Path(".ssh/id_ed25519").write_bytes(key.private_bytes(*kind))
    block = next(text for _, text in fences(ROOT / "README.md", "console") if " scan " in text)
    commands = [line.removeprefix("$ ").partition("   #")[0] for line in block.splitlines()]
    assert len(commands) == 6
    for command in commands:
        words = shlex.split(command.replace("~", str(tmp_path)))
        done = subprocess.run(
            [sys.executable, "-m", "tracefork_core.cli.main", *words[1:]], check=False
        )
        assert (words[0], done.returncode) == ("tracefork", 0), command
    assert Path("inbox/ticket-packed.tape").is_file()


def test_the_tutorial_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of the tutorial does what the text around it says, in its order."""
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    tutorial = ROOT / "docs" / "tutorial" / "first-tape.md"
    for title, text in fences(tutorial, "python"):
        assert title is not None
        Path(title).write_text(text)
    commands = [line[2:] for _, text in fences(tutorial, "console") for line in text.splitlines()]
    codes: list[tuple[str, int]] = []
    with ProviderServer() as server:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "OPENAI_API_KEY": "none",
        }
        for command in commands:
            if command.startswith("sed "):
                subprocess.run(command, shell=True, check=True)
            if not command.startswith(".venv/bin/tracefork"):
                continue
            own = f"{sys.executable} -m tracefork_core.cli.main"
            line = command.replace(".venv/bin/tracefork", own)
            done = subprocess.run(line, shell=True, env=environment, check=False)
            codes.append((command.split("tracefork ", 1)[1], done.returncode))
            if command.endswith("record -o first.tape agent.py"):
                server.stop()
    *before, after = codes
    assert before, "the tutorial has no commands"
    assert {code for _, code in before} == {0}, before
    assert after == ("replay first.tape agent.py", 1)

"""Fixtures of the tests of mistakes: a folder to make them in, and golden files of the output.

A golden file holds a command, what it printed (stdout behind a bar, then stderr) and its exit code.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tracefork_core.cli.main import main
from tracefork_testkit import ProviderServer
from tracefork_testkit.golden import hold_to

from ..cli.conftest import PRELOADED, Done, Shell, provider

__all__ = ["provider"]

GOLDEN = Path(__file__).with_name("golden")

AGENT = """\
import os
import sys

import httpx2

client = httpx2.Client(verify=False)
for word in sys.argv[1:] or ["one", "two"]:
    print(client.post(os.environ["PROVIDER"] + "/echo", content=word.encode()).text)
"""

SUPPORT = """\
import os

import httpx2

question = {
    "model": "gpt-5-mini",
    "messages": [
        {"role": "system", "content": "You answer support tickets. Be brief."},
        {"role": "user", "content": "Where is order 17?"},
    ],
}
with httpx2.Client(verify=False) as client:
    url = os.environ["PROVIDER"] + "/v1/chat/completions"
    answer = client.post(url, json=question)
    print(answer.status_code)
"""

_CODES = {0, 1, 2, 3, 4, 5, 7, 130}
_VOLATILE = [
    (r"\x1b\[[0-9;]*m", "<colour>"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"\b\d+ min \d+ s\b|\b\d+\.\d+ s\b|\b\d+ ms\b", "TIME"),
    (r"test_python\.py:\d+", "test_python.py:LINE"),
    (r"\b[0-9a-f]{64}\b", "DIGEST"),
    (r"\b[0-9a-f]{4}…[0-9a-f]{4}\b", "DIGEST"),
    (r"\b[0-9a-f]{8}( then| now)", r"DIGEST\1"),
    (r"\b\d+(\.\d+)? k?B\b", "SIZE"),
    (r"\b\d+ events\b", "COUNT events"),  # A killed run may have flushed one more.
]


def normalised(text: str, *places: tuple[Path, str]) -> list[str]:
    """Return the lines of an output, with placeholders for what changes from run to run."""
    for place, name in places:
        text = text.replace(str(place), name)
    for pattern, name in _VOLATILE:
        text = re.sub(pattern, name, text)
    return _without_libraries([line.rstrip() for line in text.splitlines()])


def _without_libraries(lines: Sequence[str]) -> list[str]:
    """Leave out what differs between releases in a traceback: frames and markers of libraries."""
    found, is_theirs = [], False
    for line in lines:
        if line.startswith('  File "'):
            is_theirs = not line.startswith('  File "HERE')
        elif line and not line.startswith("    "):
            is_theirs = False
        if not is_theirs and (not line or line.strip(" ^~")):
            found.append(line)
    return found


def golden(name: str, lines: Sequence[str]) -> None:
    """Compare lines with a golden file, or write the file."""
    hold_to(GOLDEN / f"{name}.txt", "\n".join(lines) + "\n")


class Errs:
    """Run commands that fail in a folder, and compare their output with golden files."""

    def __init__(self, shell: Shell, capture: pytest.CaptureFixture[str]) -> None:
        self.shell = shell
        self.folder = shell.folder
        self._capture = capture

    def __call__(self, name: str, *words: str) -> Done:
        """Run a command that starts no agent, in this process."""
        self._capture.readouterr()
        code = main(words)
        said = self._capture.readouterr()
        return self.told(name, words, Done(code, said.out, said.err))

    def runs(self, name: str, *words: str, **environment: str) -> Done:
        """Run a command that starts an agent, in a process of its own."""
        done = self.shell.tracefork(*words, **environment)
        return self.told(name, words, done, **environment)

    def told(self, name: str, words: Sequence[str], done: Done, **environment: str) -> Done:
        """Compare the output and exit code of a command with a golden file."""
        assert "tracefork_core" not in done.err, done.err
        assert done.exit in _CODES, done.err
        places = ((self.folder, "HERE"), (self.folder.parent, "ABOVE"), (Path(sys.prefix), "LIB"))
        settings = [f"{key}={value}" for key, value in environment.items()]
        lines = normalised(" ".join(["$", *settings, "tracefork", *words]), *places)
        lines += [f"│ {line}".rstrip() for line in normalised(done.out, *places)]
        lines += normalised(done.err, *places)
        golden(name, [*lines, f"exit {done.exit}"])
        return done


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, provider: ProviderServer) -> Iterator[Path]:
    """Return a folder with two agents and their tapes. Tests only read it."""
    folder = tmp_path_factory.mktemp("made")
    home = str(tmp_path_factory.mktemp("home"))
    shell = Shell(folder, {"PROVIDER": provider.url, "TRACEFORK_HOME": home})
    for name, agent in {"agent": AGENT, "support": SUPPORT}.items():
        shell.write(f"{name}.py", agent)
        done = shell.tracefork("record", f"{name}.py")
        assert done.exit == 0, done.err
    yield folder
    PRELOADED.close()


@pytest.fixture
def errs(
    tmp_path: Path,
    made: Path,
    provider: ProviderServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Errs]:
    """Return an `Errs` in a copy of the folder with those agents and tapes, with an empty store."""
    folder = shutil.copytree(made, tmp_path / "work")
    shell = Shell(folder, {"PROVIDER": provider.url, "TRACEFORK_HOME": str(tmp_path / "home")})
    shell.environment |= {"COLUMNS": "100", "NO_COLOR": "1"}
    monkeypatch.chdir(folder)
    for name, value in shell.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "path", [*sys.path])
    modules = set(sys.modules)
    yield Errs(shell, capsys)
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(shell.folder)):
            del sys.modules[name]

"""A suite of tests inside of a test: run in this process where that is enough, as it is quick."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tracefork_testkit import ProviderServer

PLUGIN = "tracefork_core.pytest_plugin.plugin"
ARGUMENTS = ["-q", "-rA", "-p", "no:cacheprovider", "-p", PLUGIN]
AGENT = """
import os, httpx2

def ask(question):
    messages = [{"role": "user", "content": question}]
    url = os.environ["PROVIDER"] + "/v1/chat/completions"
    with httpx2.Client(verify=False, timeout=20) as client:
        answer = client.post(url, json={"model": "gpt-5-mini", "messages": messages})
    return answer.raise_for_status().json()["choices"][0]["message"]["content"]
"""


class Result:
    """What pytest said of a suite: its text, and how each test ended."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        self.text = text

    @property
    def outcomes(self) -> dict[str, str]:
        """How each test ended, by its name without the file."""
        found = {}
        for line in self.text.splitlines():
            word, _, rest = line.partition(" ")
            if word in ("PASSED", "FAILED", "ERROR", "SKIPPED"):
                name = rest.partition(" - ")[0].rpartition(".py::")[2]
                found[name] = word.lower()
        return found

    @property
    def failed(self) -> set[str]:
        """The tests that did not pass."""
        return {name for name, word in self.outcomes.items() if word in ("failed", "error")}

    def section(self, title: str) -> list[str]:
        """Return the lines under a title."""
        lines = self.text.splitlines()
        at = next((n for n, line in enumerate(lines) if f" {title} =" in line), len(lines))
        end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("===")), len(lines))
        return lines[at + 1 : end]


class Suite:
    """A folder of tests, and the server that they ask."""

    def __init__(self, folder: Path, server: ProviderServer) -> None:
        self.folder = folder
        self.server = server
        (folder / "pytest.ini").write_text("[pytest]\n")

    def write(self, tests: str, name: str = "test_agent.py") -> None:
        """Write a file of tests, with an agent in front."""
        (self.folder / name).write_text(AGENT + tests)

    def edit(self, before: str, after: str) -> None:
        """Change the tests."""
        file = self.folder / "test_agent.py"
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after))

    @property
    def asked(self) -> int:
        """How many requests reached the server."""
        return len(self.server.requests)

    @property
    def tapes(self) -> set[str]:
        """The tapes in their places, and whatever else lies there."""
        folder = self.folder / "tapes"
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    def here(self, *arguments: str) -> Result:
        """Run the suite in this process."""
        before = Path.cwd()
        out = io.StringIO()
        command = [*ARGUMENTS, "-p", "no:faulthandler", "--import-mode=importlib", *arguments]
        os.chdir(self.folder)
        try:
            with redirect_stdout(out), redirect_stderr(out):
                status = pytest.main(command)
        finally:
            os.chdir(before)
            for name in [name for name in sys.modules if name.startswith("test_agent")]:
                del sys.modules[name]
        return Result(int(status), out.getvalue())

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start the suite in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *ARGUMENTS, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def apart(self, *arguments: str, **variables: str) -> Result:
        """Run the suite in a process of its own."""
        process = self.start(*arguments, **variables)
        text, _ = process.communicate(timeout=100)
        return Result(process.returncode, text)


ASYNCIO = ("-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function")


def recorded_and_replayed(
    tests: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Suite, Result]:
    """Record tests once with a key, and replay them without it; return how the replay ended.

    The model's server is gone by then, and all tests have to end as they did while recorded.
    """
    quiet(monkeypatch)
    with ProviderServer(nondeterministic=True) as server:
        monkeypatch.setenv("PROVIDER", server.url)
        suite = Suite(folder, server)
        (folder / "test_agent.py").write_text(tests)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789abcdefghijkl")
        recorded = suite.here(*ASYNCIO, "--tape-mode=once")
    monkeypatch.delenv("OPENAI_API_KEY")
    replayed = suite.here(*ASYNCIO)
    assert replayed.outcomes == recorded.outcomes, recorded.text + replayed.text
    return suite, replayed


def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep installed plugins and the settings of a build server out of inner suites."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("CI", "TRACEFORK_TAPE_MODE", "OPENAI_API_KEY", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)

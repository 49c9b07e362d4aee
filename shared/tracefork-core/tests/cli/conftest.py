"""Share a shell for commands, and a provider for small agents, among the tests of the CLI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tracefork_testkit import ProviderServer

from .preloaded import Preloaded

SEED = {"PYTHONHASHSEED": "0"}
"""With a seed, no command restarts Python to set one: test_hash_seed.py lets them."""
PRELOADED = Preloaded(**SEED)

OPENAI_AGENT = """\
import os
import sys

import openai

client = openai.OpenAI(base_url=os.environ["PROVIDER"] + "/v1", api_key="sk-none")
SYSTEM = "You answer support tickets. Be brief."
for question in sys.argv[1:] or ["Where is order 17?"]:
    answer = client.chat.completions.create(
        model="gpt-5-mini",
        messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}],
    )
    print(answer.choices[0].message.content)
"""

PLAIN_AGENT = """\
import os
import sys

import httpx2

for word in sys.argv[1:] or ["one", "two"]:
    print(httpx2.post(os.environ["PROVIDER"] + "/echo", content=word.encode()).text)
"""

FAILING_AGENT = PLAIN_AGENT + "raise KeyError('x')\n"


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    exit: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        return found


@dataclass
class Shell:
    """A folder in which commands run, each in a process of its own."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def python_path(self) -> str:
        """The PYTHONPATH of the tests, to append to a longer one."""
        return os.environ.get("PYTHONPATH", "")

    def full_environment(self, **environment: str) -> dict[str, str]:
        """Return the environment variables of a command."""
        return {**os.environ, **SEED, **self.environment, **environment}

    def write(self, name: str, text: str) -> Path:
        """Write a file into the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def edit(self, name: str, before: str, after: str) -> None:
        """Replace a text in a file."""
        text = (self.folder / name).read_text()
        assert before in text
        (self.folder / name).write_text(text.replace(before, after))

    def at(self, folder: Path) -> Shell:
        """Return a shell in another folder."""
        return replace(self, folder=folder)

    def tracefork(self, *words: str, **environment: str) -> Done:
        """Run one command."""
        return _done(PRELOADED.run(words, self.folder, self.full_environment(**environment)))

    def python(self, *words: str, **environment: str) -> Done:
        """Run Python in the folder."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=self.full_environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return _done(done)


def _done(process: subprocess.CompletedProcess[bytes]) -> Done:
    return Done(process.returncode, process.stdout.decode(), process.stderr.decode())


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_running() -> Iterator[None]:
    yield
    PRELOADED.close()


@pytest.fixture(scope="session")
def provider() -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        yield server


@pytest.fixture
def shell(tmp_path: Path, provider: ProviderServer) -> Shell:
    """Return a shell in an empty folder, with a store of its own."""
    folder = tmp_path / "work"
    folder.mkdir()
    found = Shell(folder, {"PROVIDER": provider.url, "TRACEFORK_HOME": str(tmp_path / "home")})
    found.write("agent.py", PLAIN_AGENT)
    return found


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory, provider: ProviderServer) -> Shell:
    """Return a shell in a folder with recorded agents, which tests must not change."""
    folder = tmp_path_factory.mktemp("recorded")
    home = tmp_path_factory.mktemp("home")
    found = Shell(folder, {"PROVIDER": provider.url, "TRACEFORK_HOME": str(home)})
    agents = {"support": OPENAI_AGENT, "plain": PLAIN_AGENT, "failing": FAILING_AGENT}
    for name, agent in agents.items():
        found.write(f"{name}.py", agent)
        done = found.tracefork("record", f"{name}.py")
        assert done.exit == (name == "failing"), done.err
    return found


def copied(from_folder: Path, shell: Shell) -> Shell:
    """Return a shell with a copy of a folder's files."""
    shutil.copytree(from_folder, shell.folder, dirs_exist_ok=True)
    return shell


@pytest.fixture(scope="session")
def agents_on_tape(tmp_path_factory: pytest.TempPathFactory, provider: ProviderServer) -> Shell:
    """Return a shell in a folder of `tracefork ci` with two agents, which tests must not change."""
    folder, home = tmp_path_factory.mktemp("gated"), tmp_path_factory.mktemp("home")
    found = Shell(folder, {"PROVIDER": provider.url, "TRACEFORK_HOME": str(home)})
    for name, agent in {"support.py": OPENAI_AGENT, "agent.py": PLAIN_AGENT}.items():
        found.write(name, agent)
        done = found.tracefork("ci", "record", name)
        assert done.exit == 0, done.err
    return found


@pytest.fixture
def gated(shell: Shell, agents_on_tape: Shell) -> Shell:
    """Return a shell in a copy of that folder."""
    return copied(agents_on_tape.folder, shell)


@pytest.fixture
def taped(shell: Shell, recorded: Shell) -> Shell:
    """Return a shell in a folder with copies of those tapes, and `agent.tape` of `agent.py`."""
    for path in recorded.folder.glob("*.tape"):
        shutil.copy(path, shell.folder)
    shutil.copy(recorded.folder / "plain.tape", shell.folder / "agent.tape")
    return shell

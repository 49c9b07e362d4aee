"""A shell whose SDKs are pointed at a scripted provider, and the programs that run in it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tracefork_core.tape import Exchange, Tape
from tracefork_testkit import ProviderServer

from ..cli.conftest import Shell

KEY = "sk-proj-0123456789abcdefghijklmnop"
PYTHON_AGENT = """\
import sys

import anthropic
import openai

said = [{"role": "user", "content": sys.argv[1]}]
chat = openai.OpenAI().chat.completions
print(chat.create(model="gpt-5-mini", messages=said).choices[0].message.content)
for chunk in chat.create(model="gpt-5-mini", messages=said, stream=True):
    print(chunk.choices[0].delta.content or "", end="")
print()
claude = anthropic.Anthropic().messages
print(claude.create(model="claude-haiku-4-5", max_tokens=99, messages=said).content[0].text)
with claude.stream(model="claude-haiku-4-5", max_tokens=99, messages=said) as stream:
    print("".join(stream.text_stream))
"""
CURL = (
    'curl -sS -H "Authorization: Bearer $OPENAI_API_KEY" -H "content-type: application/json" '
    '-d \'{"model": "gpt-5-mini", "messages": [{"role": "user", "content": "@say WORD"}]}\' '
    "$OPENAI_BASE_URL/chat/completions"
)


def curl(word: str = "hello") -> tuple[str, ...]:
    """Return the words of a command that asks a model for a word with curl."""
    return ("--", "sh", "-c", CURL.replace("WORD", word))


def exchanges(tape: Path) -> list[Exchange]:
    """Return the exchanges on a tape."""
    with Tape.open(tape) as opened:
        return list(opened.exchanges)


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    """Serve a provider for one test, so that its requests can be counted."""
    with ProviderServer() as server:
        yield server


@pytest.fixture
def shell(tmp_path: Path, provider: ProviderServer) -> Shell:
    """Return a shell in an empty folder, whose SDKs are pointed at the provider."""
    folder = tmp_path / "work"
    folder.mkdir()
    surroundings = {
        "OPENAI_BASE_URL": f"{provider.url}/v1",
        "OPENAI_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": provider.url,
        "ANTHROPIC_API_KEY": f"{KEY}qrstuvw",
        "TRACEFORK_HOME": str(tmp_path / "home"),
    }
    found = Shell(folder, surroundings)
    found.write("agent.py", PYTHON_AGENT)
    return found


@dataclass
class Running:
    """A proxy that runs without a command: its process, and the variables that it printed."""

    process: subprocess.Popen[str]
    variables: dict[str, str]

    @property
    def address(self) -> str:
        """The base URL of the provider behind the proxy."""
        return self.variables["ANTHROPIC_BASE_URL"]

    def ended(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """End it by a signal; return its exit code and what it printed."""
        self.process.send_signal(number)
        _, printed = self.process.communicate(timeout=60)
        return self.process.returncode, printed


@contextmanager
def standalone(shell: Shell, *words: str) -> Iterator[Running]:
    """Run a proxy without a command, and kill it at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tracefork_core", "proxy", *words],
        cwd=shell.folder,
        env=shell.full_environment(COLUMNS="200"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    variables = {}
    for line in process.stderr:
        if line.startswith("  export "):
            name, _, value = line.removeprefix("  export ").strip().partition("=")
            variables[name] = value
        elif "Ctrl-C ends it" in line:
            break
    try:
        yield Running(process, variables)
    finally:
        process.kill()
        process.communicate()

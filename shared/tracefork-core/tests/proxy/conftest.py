"""A shell whose SDKs are pointed at a scripted provider, and the programs that run in it."""

from __future__ import annotations

from collections.abc import Iterator
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

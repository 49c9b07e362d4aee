"""A replay works without the keys of the recording; a missing key reads as a placeholder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import openai
import pytest

from tracefork_core import DivergenceError, SurroundingsWarning, Tape, fork, record, replay
from tracefork_testkit import ProviderServer

KEY = "sk-proj-9fK2mQ7xLw3ZrT8vB1nC"
PLACEHOLDER = "tracefork-secret-OPENAI_API_KEY"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_ADMIN_KEY", raising=False)


@pytest.fixture
def ask(provider: ProviderServer) -> Callable[[], str | None]:
    """Return an agent that lets the SDK read the key, and also sends the key in its prompt."""

    def ask() -> str | None:
        with openai.OpenAI(base_url=f"{provider.url}/v1", max_retries=0) as client:
            prompt = client.api_key
            answer = client.chat.completions.create(
                model="gpt-5-mini", messages=[{"role": "user", "content": prompt}]
            )
        return answer.choices[0].message.content

    return ask


def test_an_sdk_starts_without_its_key_at_replay(
    tape: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[], str | None]
) -> None:
    """The prompt holds the placeholder, and equals what was masked on the tape."""
    with record(tape):
        ask()
    with Tape.open(tape) as opened:
        assert PLACEHOLDER.encode() in opened.exchanges[0].request_body
    monkeypatch.delenv("OPENAI_API_KEY")
    with replay(tape) as run:
        ask()
        assert os.environ["OPENAI_API_KEY"] == PLACEHOLDER
        assert os.environb[b"OPENAI_API_KEY"] == PLACEHOLDER.encode()
    assert (run.exchanges, run.differences) == (1, [])


def test_only_a_replay_has_placeholders(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[], str | None]
) -> None:
    """Live calls need the real key: after the block, in a fork and in a new recording."""
    with record(tape):
        ask()
    monkeypatch.delenv("OPENAI_API_KEY")
    with replay(tape):
        ask()

    def ask_without_key() -> None:
        with pytest.raises(openai.OpenAIError, match="api_key"):
            ask()

    ask_without_key()
    with record(tmp_path / "new.tape"):
        ask_without_key()
    with pytest.raises(DivergenceError, match="never asked for"):
        with fork(tape, 0, to=tmp_path / "branch.tape"):
            ask_without_key()


def test_a_key_that_is_set_is_read_as_it_is(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another key than at the recording does not matter."""
    with record(tape):
        os.environ.get("OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", "another-key-1234567")
    with replay(tape) as run:
        assert os.environ["OPENAI_API_KEY"] == "another-key-1234567"
    assert run.differences == []


@pytest.mark.parametrize("is_set", [True, False])
def test_a_key_that_the_agent_deletes_is_missing(
    tape: Path, monkeypatch: pytest.MonkeyPatch, is_set: bool
) -> None:
    """The key may be set at replay, or a placeholder."""

    def pop_key() -> tuple[bool, str | None]:
        value = os.environ.pop("OPENAI_API_KEY", None)
        with pytest.raises(KeyError):
            del os.environ["OPENAI_API_KEY"]
        return value is not None, os.environ.get("OPENAI_API_KEY")

    with record(tape):
        assert pop_key() == (True, None)
    if is_set:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with replay(tape):
        assert pop_key() == (True, None)


@pytest.mark.parametrize("name", ["OPENAI_ADMIN_KEY", "MODEL", "NEVER_READ_KEY"])
def test_only_a_secret_that_was_set_and_read_has_a_placeholder(
    tape: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The three variables lack one of these each."""
    monkeypatch.setenv("MODEL", "gpt-5-mini")
    monkeypatch.setenv("NEVER_READ_KEY", KEY)
    with record(tape):
        os.environ.get("OPENAI_ADMIN_KEY")
        os.environ.get("MODEL")
    monkeypatch.delenv(name, raising=False)
    with warnings.catch_warnings(), replay(tape):
        warnings.simplefilter("ignore", SurroundingsWarning)
        assert name not in os.environ

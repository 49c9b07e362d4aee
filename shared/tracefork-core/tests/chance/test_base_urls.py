"""Base URLs that an SDK reads are on the tape, and a replay with another one says so."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import openai
import pytest

from tracefork_core import DivergenceError, SurroundingsWarning, Tape, record, replay
from tracefork_core.chance.surroundings import is_base_url
from tracefork_testkit import ProviderServer


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")


def ask() -> str | None:
    """Ask a model with a client that reads its base URL itself."""
    with openai.OpenAI(max_retries=0) as client:
        answer = client.chat.completions.create(
            model="gpt-5-mini", messages=[{"role": "user", "content": "Where is order 17?"}]
        )
    content: str | None = answer.choices[0].message.content
    return content


def test_the_card_names_a_base_url_that_differs(
    tape: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the SDK reads it."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    with record(tape):
        recorded = ask()
    with replay(tape) as run:
        assert ask() == recorded
    assert run.differences == []
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/proxy/v1")
    with pytest.raises(DivergenceError) as raised, replay(tape):
        ask()
    hints = "".join(raised.value.divergence.hints)
    assert f"OPENAI_BASE_URL was '{provider.url}/v1'" in hints
    assert f"is '{provider.url}/proxy/v1' now" in hints


def test_a_base_url_that_was_not_set_differs_from_one_that_is(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control is the replay before."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with record(tape):
        openai.OpenAI().close()
    with replay(tape) as run:
        openai.OpenAI().close()
    assert run.differences == []
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.warns(SurroundingsWarning, match="OPENAI_BASE_URL was not set"), replay(tape):
        openai.OpenAI().close()


def test_credentials_in_a_base_url_are_on_no_tape(
    tape: Path, written: Callable[[Path], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of it is, and is compared."""
    monkeypatch.setenv("MY_API_BASE", "https://me:Tr0ub4dor-and-3@one.example/v1?api_key=s3cretkey")
    with record(tape):
        os.environ["MY_API_BASE"]
    held = written(tape)
    assert b"Tr0ub4dor" not in held
    assert b"s3cretkey" not in held
    with Tape.open(tape) as opened:
        (seen,) = [seen for seen in opened.surroundings if seen.name == "MY_API_BASE"]
    assert seen.value == "https://one.example/v1"
    monkeypatch.setenv("MY_API_BASE", "https://you:other@two.example/v1")
    with pytest.warns(SurroundingsWarning, match="'https://two.example/v1'"), replay(tape):
        os.environ["MY_API_BASE"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ANTHROPIC_BASE_URL", True),
        ("OPENAI_API_BASE", True),
        ("AZURE_OPENAI_ENDPOINT", True),
        ("AWS_ENDPOINT_URL", True),
        ("OLLAMA_HOST", True),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", False),
        ("LANGSMITH_ENDPOINT", False),
        ("OPENAI_ORG_ID", False),
        ("HOST", False),
    ],
)
def test_the_name_tells_a_base_url(name: str, expected: bool) -> None:
    """A tracing tool's is none: it differs between machines, and nothing is sent there."""
    assert is_base_url(name) is expected


def test_other_variables_that_an_sdk_reads_are_on_no_tape(tape: Path) -> None:
    """The control: an SDK reads dozens of them."""
    with record(tape):
        openai.OpenAI().close()
    with Tape.open(tape) as opened:
        names = {seen.name for seen in opened.surroundings}
    assert "OPENAI_ORG_ID" not in names
    assert "OPENAI_BASE_URL" in names

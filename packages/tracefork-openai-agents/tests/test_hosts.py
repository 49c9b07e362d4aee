"""Runs replay in other processes, and with every host that the SDK sends requests to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel
from openai import AsyncAzureOpenAI

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

from . import desk_program

Call = Callable[..., Any]
PROGRAM = Path(__file__).parent / "desk_program.py"


def test_a_replay_in_a_process_with_other_hashes_sends_the_same(
    server: ProviderServer, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host of OpenAI gets a random cache key, and a list in the order of a set."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-0123456789")
    with server.real_hosts(), tracefork.record(tape):
        answer = desk_program.answer()
    assert b'"prompt_cache_key":"agents-sdk:run:' in server.requests[0].body
    done = subprocess.run(
        [sys.executable, PROGRAM, tape],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"{answer}\n", done.stderr
    assert b"sk-none-0123456789" not in tape.read_bytes()


def test_a_request_includes_the_same_in_the_same_order_outside_a_session(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: only a session sorts the list."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-0123456789")
    built = OpenAIResponsesModel._build_response_create_kwargs
    with server.real_hosts():
        desk_program.answer()
    assert OpenAIResponsesModel._build_response_create_kwargs is built


@pytest.mark.parametrize("kind", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
def test_models_of_azure_replay(url: str, ask: Call, twice: Call, paths: Call, kind: Any) -> None:
    """They have another client and other URLs, and the same steps."""
    client = AsyncAzureOpenAI(base_url=url, api_key="none", api_version="2025-03-01-preview")
    agent = Agent(name="Helper", instructions="@say Hello.", model=kind("gpt-5-mini", client))
    recorded, again = twice(lambda: ask(agent, "Hello.").final_output)
    assert recorded == again
    assert paths() == ["run:Agent workflow ▸ agent:Helper ▸ turn:turn 1 ▸ model:gpt-5-mini"]

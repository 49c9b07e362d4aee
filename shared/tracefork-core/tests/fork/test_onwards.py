"""A change of a prompt or a model holds for what the same agent asks after it, and for no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

WRITER, CRITIC = "You write.", "You judge."


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


def agents(url: str) -> None:
    """Ask two agents in turn, each twice: what the writer is told stays the same."""
    for system in (WRITER, CRITIC, WRITER, CRITIC):
        model = "gpt-5" if system is CRITIC else "gpt-5-mini"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": "Go on."}]
        httpx2.post(f"{url}/v1/chat/completions", json={"model": model, "messages": messages})


def asked(server: ProviderServer, after: int = 4) -> list[tuple[str, str]]:
    """Return the models and prompts of what was asked after the recording."""
    bodies = [json.loads(request.body) for request in server.requests[after:]]
    return [(body["model"], body["messages"][0]["content"]) for body in bodies]


@pytest.fixture
def tape(tmp_path: Path, server: ProviderServer) -> Path:
    path = tmp_path / "run.tape"
    with tracefork.record(path):
        agents(server.url)
    return path


def test_a_prompt_holds_for_the_agent_that_it_was_changed_for(
    tape: Path, server: ProviderServer
) -> None:
    """The critic keeps its own."""
    edit = tracefork.Edit(system="You write in verse.")
    with tracefork.fork(tape, 0, edit, onwards=True):
        agents(server.url)
    verse = ("gpt-5-mini", "You write in verse.")
    assert asked(server) == [verse, ("gpt-5", CRITIC), verse, ("gpt-5", CRITIC)]


def test_a_model_holds_where_the_same_model_is_asked(tape: Path, server: ProviderServer) -> None:
    """The critic's own model stays."""
    with tracefork.fork(tape, 0, tracefork.Edit(model="gpt-6"), onwards=True):
        agents(server.url)
    assert [model for model, _ in asked(server)] == ["gpt-6", "gpt-5", "gpt-6", "gpt-5"]


def test_a_change_may_be_made_once(tape: Path, server: ProviderServer) -> None:
    """The control: without it, the later question is the agent's own."""
    with tracefork.fork(tape, 0, tracefork.Edit(model="gpt-6")):
        agents(server.url)
    assert [model for model, _ in asked(server)] == ["gpt-6", "gpt-5", "gpt-5-mini", "gpt-5"]


AGENT = """\
import os, httpx2
for question in ("first", "second"):
    messages = [{"role": "system", "content": "You write."}, {"role": "user", "content": question}]
    body = {"model": "gpt-5-mini", "messages": messages}
    httpx2.post(os.environ["PROVIDER"] + "/v1/chat/completions", json=body)
"""


@pytest.mark.parametrize(
    ("options", "models"), [([], ["new", "new"]), (["--once"], ["new", "gpt-5-mini"])]
)
def test_the_command_changes_it_from_here_on(
    tmp_path: Path, server: ProviderServer, options: list[str], models: list[str]
) -> None:
    """`--once` changes one question; `tree` says which of the two it was."""
    home = {"TRACEFORK_HOME": str(tmp_path / "home"), "COLUMNS": "120"}
    environment = {**os.environ, **home, "PROVIDER": server.url}
    (tmp_path / "agent.py").write_text(AGENT)

    def typed(*words: str) -> str:
        command = [sys.executable, "-m", "tracefork_core", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    typed("record", "agent.py")
    typed("fork", "agent.tape", "agent.py", "--at", "0", "--model", "new", *options)
    assert [model for model, _ in asked(server, 2)] == models
    assert ("and from there on" in typed("tree", "agent.tape")) is (not options)

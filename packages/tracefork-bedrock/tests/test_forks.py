"""Forks of runs that ask Bedrock, with boto3 and from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EventStreamError

import tracefork_core as tracefork
from tracefork_core import UsageError, WriteError
from tracefork_testkit import ProviderServer

from .conftest import client_at, exchanges
from .test_operations import TOOLS, converse, invoke, invoke_stream

TEXT = "The tape says ü"


def texts(value: Any) -> str:
    """Return all texts in what an operation returned, joined."""
    if isinstance(value, dict):
        own = value.get("text")
        inner = "".join(map(texts, value.values()))
        return own + inner if isinstance(own, str) else inner
    return "".join(map(texts, value)) if isinstance(value, list | tuple) else ""


def converse_stream(client: Any) -> Any:
    asked = [{"role": "user", "content": [{"text": "@say how is it"}]}]
    answer = client.converse_stream(modelId="a.claude-v1:0", messages=asked, toolConfig=TOOLS)
    return list(answer["stream"])


@pytest.mark.parametrize("ask", [converse, converse_stream, invoke, invoke_stream])
def test_a_fork_answers_with_a_text(
    ask: Any, server: ProviderServer, client: Any, tape: Path, tmp_path: Path
) -> None:
    """The next question is live, and the branch replays by itself."""

    def run() -> Any:
        return ask(client), ask(client)

    with tracefork.record(tape):
        run()
    asked = len(server.requests)
    with tracefork.fork(tape, at=0, replace=TEXT, to=tmp_path / "branch.tape"):
        given, live = run()
    assert TEXT in texts(given)
    assert TEXT not in texts(live)
    assert len(server.requests) == asked + 1
    with tracefork.replay(tmp_path / "branch.tape"):
        assert run() == (given, live)


@pytest.mark.parametrize("ask", [converse, converse_stream, invoke, invoke_stream])
def test_a_fork_asks_another_model_in_another_way(
    ask: Any, server: ProviderServer, client: Any, tape: Path, tmp_path: Path
) -> None:
    """The model is in the path, which is signed again, and the rest in the body."""
    with tracefork.record(tape):
        ask(client)
    edit = tracefork.Edit(model="us.amazon.nova-lite-v1:0", system="Be brief.", temperature=0.1)
    with tracefork.fork(tape, at=0, replace=edit, to=tmp_path / "branch.tape"):
        ask(client)
    sent = server.requests[-1]
    assert sent.path.startswith("/model/us.amazon.nova-lite-v1%3A0/")
    assert "Be brief." in str(sent.json()["system"])
    assert sent.header("authorization")
    told = sent.json()
    assert 0.1 in (told.get("temperature"), told.get("inferenceConfig", {}).get("temperature"))


@pytest.mark.parametrize("ask", [converse, converse_stream, invoke, invoke_stream])
def test_a_fork_throttles_as_bedrock_does(
    ask: Any, server: ProviderServer, client: Any, tape: Path, tmp_path: Path
) -> None:
    """The client raises the class that the agent catches, and counts its attempts."""
    with tracefork.record(tape):
        ask(client)
    asked, throttled = len(server.requests), tracefork.Fail(kind="ThrottlingException")
    with (
        tracefork.fork(tape, at=0, replace=throttled, to=tmp_path / "branch.tape"),
        pytest.raises(client.exceptions.ThrottlingException, match="injected by a fork"),
    ):
        ask(client)
    assert len(server.requests) == asked


def test_a_throttled_call_is_tried_again_live(
    server: ProviderServer, tape: Path, tmp_path: Path
) -> None:
    """One error is injected; what the client's own retries get is from the model."""
    from botocore.config import Config

    client = client_at(server, config=Config(retries={"mode": "standard", "total_max_attempts": 3}))
    with tracefork.record(tape):
        converse(client)
    fails = tracefork.Fail(kind="ThrottlingException")
    with tracefork.fork(tape, at=0, replace=fails, to=tmp_path / "branch.tape"):
        assert converse(client)["ResponseMetadata"]["RetryAttempts"] == 1


def test_a_stream_of_a_fork_fails_in_the_middle(
    server: ProviderServer, client: Any, tape: Path, tmp_path: Path
) -> None:
    """The agent has read half of the answer by then."""
    with tracefork.record(tape):
        converse_stream(client)
    fails = tracefork.Fail(kind="modelStreamErrorException", message="the model died")
    with (
        tracefork.fork(tape, at=0, replace=fails, to=tmp_path / "branch.tape"),
        pytest.raises(EventStreamError, match="the model died"),
    ):
        converse_stream(client)


def test_an_exception_of_the_library_is_still_one(
    server: ProviderServer, client: Any, tape: Path, tmp_path: Path
) -> None:
    """Names that are none of Bedrock's errors are those of botocore's."""
    from botocore.exceptions import ReadTimeoutError

    with tracefork.record(tape):
        converse(client)
    fails = tracefork.Fail(kind="ReadTimeoutError")
    with (
        tracefork.fork(tape, at=0, replace=fails, to=tmp_path / "branch.tape"),
        pytest.raises(ReadTimeoutError),
    ):
        converse(client)


def test_an_error_that_nothing_has_is_refused_before_the_fork(client: Any, tape: Path) -> None:
    """The agent would get an exception that says nothing; one sentence says what can be given."""
    with tracefork.record(tape):
        converse(client)
    fails = tracefork.Fail(kind="Banana")
    with (
        pytest.raises(tracefork.UsageError, match=r"Banana.*ThrottlingException.*ReadTimeoutError"),
        tracefork.fork(tape, at=0, replace=fails),
    ):
        raise AssertionError("the fork has begun")


def test_a_fork_may_call_another_tool(
    server: ProviderServer, client: Any, tape: Path, tmp_path: Path
) -> None:
    """In the middle of a stream of frames, too."""
    with tracefork.record(tape):
        converse_stream(client)
    calls = tracefork.Replace(tool_calls=[("look", {"q": "other"})])
    with tracefork.fork(tape, at=0, replace=calls, to=tmp_path / "branch.tape"):
        events = converse_stream(client)
    said = "".join(
        event["contentBlockDelta"]["delta"]["toolUse"]["input"]
        for event in events
        if "contentBlockDelta" in event
    )
    assert json.loads(said) == {"q": "other"}


def agent_of(server: ProviderServer) -> Any:
    agent = client_at(server, "bedrock-agent-runtime")

    def run() -> Any:
        asked = {"agentId": "A", "agentAliasId": "B", "sessionId": "one", "inputText": "@say hi"}
        answer = agent.invoke_agent(**asked)
        return b"".join(event["chunk"]["bytes"] for event in answer["completion"]).decode()

    return run


def test_an_agent_of_bedrock_counts_as_a_write(
    server: ProviderServer, client: Any, tape: Path, tmp_path: Path
) -> None:
    """Its functions may book and pay. Asking a model has no side effect."""
    agent = agent_of(server)

    def run() -> Any:
        converse(client)
        return agent()

    with tracefork.record(tape):
        run()
    with pytest.raises(WriteError), tracefork.fork(tape, at=0, to=tmp_path / "refused.tape"):
        run()
    with tracefork.fork(tape, at=1, replace=TEXT, to=tmp_path / "given.tape"):
        assert run() == TEXT
    kinds = [exchange.aside.effect for exchange in exchanges(tape)]
    assert kinds == ["read", "write"]


def test_what_has_no_place_in_a_request_is_refused(
    server: ProviderServer, client: Any, tape: Path
) -> None:
    """The message says so before anything is sent."""
    with tracefork.record(tape):
        converse(client)
    asked = len(server.requests)
    with (
        pytest.raises(UsageError, match="does not offer the tool 'x'"),
        tracefork.fork(tape, at=0, replace=tracefork.Edit(tools=["x"])),
    ):
        converse(client)
    assert len(server.requests) == asked


AGENT = """
import os, boto3
client = boto3.client("bedrock-runtime", "us-east-1", endpoint_url=os.environ["BEDROCK_URL"],
                      aws_access_key_id="a", aws_secret_access_key="b")
asked = [{"role": "user", "content": [{"text": "@say the recorded words"}]}]
options = {"modelId": "us.amazon.nova-lite-v1:0", "messages": asked}
print(client.converse(**options)["output"]["message"]["content"][0]["text"])
try:
    for event in client.converse_stream(**options)["stream"]:
        print(event.get("contentBlockDelta", {}).get("delta", {}).get("text", ""), end="")
except Exception as error:
    print(type(error).__name__)
"""


def test_the_command_line_shows_and_forks_calls_of_bedrock(
    server: ProviderServer, tmp_path: Path
) -> None:
    """Models, tokens and costs, at the width of a usual terminal."""
    (tmp_path / "agent.py").write_text(AGENT)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment |= {"BEDROCK_URL": server.url, "COLUMNS": "80", "AWS_EC2_METADATA_DISABLED": "true"}

    def tracefork_says(*words: str) -> str:
        ended = subprocess.run(
            [sys.executable, "-m", "tracefork_core.cli.main", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.stdout + ended.stderr

    tracefork_says("record", "-o", "a.tape", "agent.py")
    shown = tracefork_says("show", "a.tape")
    assert "(2 us.amazon.nova-lite-v1:0)" in shown
    assert "cost —" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    page = tracefork_says("show", "a.tape", "1")
    assert "bedrock.converse · stream" in page
    assert "← assistant  the recorded words" in page
    fails = ("--fail", "modelStreamErrorException")
    said = tracefork_says("fork", "a.tape", "--at", "1", *fails, "-o", "b.tape")
    assert "EventStreamError" in said
    assert "✗ modelStreamErrorExcept" in tracefork_says("show", "b.tape")
    page = tracefork_says("show", "b.tape", "1")
    assert "modelStreamErrorException: injected by a fork" in page
    said = tracefork_says("fork", "a.tape", "--at", "0", "--text", "Changed", "-o", "c.tape")
    assert "Changed" in said

"""A real Phoenix receives an exported run, shows all of it, and what it exports comes back."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracefork_core.providers import ModelCall, model_call
from tracefork_core.tape import Tape
from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

SECONDS = 120
AGENT = """
import sys
import openai

client = openai.OpenAI(api_key="none", base_url=sys.argv[1])
tool = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
messages = [{"role": "user", "content": "What is the weather in Oslo?"}]
said = client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=[tool])
call = said.choices[0].message.tool_calls[0]
messages += [
    said.choices[0].message.model_dump(exclude_none=True),
    {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
]
client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=[tool])
"""


def weather(request: ModelRequest) -> Reply:
    """Call the tool first."""
    if any(message.tool_results for message in request.messages):
        return Reply("It is sunny.")
    return Reply(tool_calls=[ToolCall("look_up", {"city": "Oslo"})])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start Phoenix on a database of its own; yield its address."""
    folder, port = tmp_path_factory.mktemp("phoenix"), free_port()
    settings = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    command = [str(Path(sys.executable).with_name("phoenix")), "serve"]
    log = (folder / "log").open("wb")
    server = subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + SECONDS
        while not answers(f"{url}/healthz"):
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.5)
        yield url
    finally:
        server.terminate()
        server.wait(30)
        log.close()


def answers(url: str) -> bool:
    """Return whether a server is there and well."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def spans_of(url: str, count: int) -> list[dict[str, Any]]:
    """Return the spans that Phoenix has, once it has as many; it stores them a moment later."""
    until = time.monotonic() + SECONDS
    while True:
        with urllib.request.urlopen(f"{url}/v1/projects/default/spans?limit=100") as response:
            spans: list[dict[str, Any]] = json.load(response)["data"]
        if len(spans) >= count or time.monotonic() > until:
            return spans
        time.sleep(0.2)


def tracefork(*words: str, cwd: Path) -> str:
    command = [sys.executable, "-m", "tracefork_core", *words]
    done = subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record an agent that calls a tool."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "agent.py").write_text(AGENT)
    with ProviderServer(weather) as server:
        url = server.url if server.url.endswith("/v1") else f"{server.url}/v1"
        tracefork("record", "-o", "run.tape", "agent.py", "--", url, cwd=folder)
    return folder / "run.tape"


def test_phoenix_has_the_messages_tools_and_counts(phoenix: str, tape: Path) -> None:
    """Asked for by its own interface; a second export adds nothing."""
    for _ in range(2):
        traces = f"{phoenix}/v1/traces"
        tracefork("export", tape.name, "--content", "--otlp", traces, cwd=tape.parent)
    spans = spans_of(phoenix, 3)
    assert sorted(span["span_kind"] for span in spans) == ["CHAIN", "LLM", "LLM"]
    first, second = sorted(
        (span["attributes"] for span in spans if span["span_kind"] == "LLM"),
        key=lambda attributes: int(attributes["tracefork.exchange"]),
    )
    start = "llm.output_messages.0.message"
    assert first[f"{start}.tool_calls.0.tool_call.function.name"] == "look_up"
    assert json.loads(first[f"{start}.tool_calls.0.tool_call.function.arguments"]) == {
        "city": "Oslo"
    }
    assert first["llm.input_messages.0.message.content"] == "What is the weather in Oslo?"
    assert second["llm.input_messages.2.message.content"] == "sunny"
    assert second[f"{start}.content"] == "It is sunny."
    with Tape.open(tape) as opened:
        counts = [call.usage for exchange in opened.exchanges if (call := model_call(exchange))]
    for attributes, usage in zip((first, second), counts, strict=True):
        assert usage is not None
        assert attributes["llm.token_count.prompt"] == usage.input_tokens
        assert attributes["llm.token_count.completion"] == usage.output_tokens


def test_what_phoenix_exports_comes_back(phoenix: str, tape: Path, tmp_path: Path) -> None:
    """Every part of every message, after a way through its database."""
    traces = f"{phoenix}/v1/traces"
    tracefork("export", tape.name, "--content", "--otlp", traces, cwd=tape.parent)
    (tmp_path / "spans.json").write_text(json.dumps({"data": spans_of(phoenix, 3)}))
    tracefork("import", "spans.json", "-o", "back.tape", cwd=tmp_path)
    ours, theirs = calls_on(tape), calls_on(tmp_path / "back.tape")
    assert [(call.input, call.output) for call in theirs] == [
        (call.input, call.output) for call in ours
    ]
    assert len(ours) == 2


def calls_on(path: Path) -> list[ModelCall]:
    """Return the model calls of a tape."""
    with Tape.open(path) as opened:
        return [call for exchange in opened.exchanges if (call := model_call(exchange))]

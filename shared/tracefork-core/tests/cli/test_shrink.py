"""`tracefork shrink` finds the smallest run of an agent that still fails."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

from .conftest import Shell

pytestmark = pytest.mark.many_processes

TURNS = 24
AGENT = """\
import json, os
import httpx2
import tracefork_core as tracefork

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("look_up", "count", "weigh", "price")
]
LOG = [f"line {n}: nothing of note" for n in range(12)]

@tracefork.tool
def look_up(n):
    return "\\n".join([*LOG[:6], "account 13 is overdrawn" if n == 9 else LOG[6], *LOG[6:]])

def main():
    messages = [{"role": "system", "content": "Check it."}, {"role": "user", "content": "Go."}]
    with httpx2.Client(verify=False) as client:
        while True:
            body = {"model": "gpt-5-mini", "messages": messages, "tools": TOOLS}
            answer = client.post(os.environ["PROVIDER"] + "/v1/chat/completions", json=body)
            message = answer.json()["choices"][0]["message"]
            messages.append(message)
            for call in message.get("tool_calls") or ():
                result = look_up(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            if not message.get("tool_calls"):
                return message["content"]
"""
AGENT_WORDS = ("--agent", "agent:main")
GOOD = "--oracle=not-regex:refuse"


class Desk:
    """Look up one order after another, then refuse if a result names the overdrawn account."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: ModelRequest) -> Reply:
        self.asked += 1
        if self.asked <= TURNS:
            return Reply(tool_calls=(ToolCall("look_up", {"n": self.asked - 1}),))
        read = any("overdrawn" in result.text for result in request.tool_results)
        tools = {tool.name for tool in request.tools}
        return Reply("refuse" if read and "look_up" in tools else "all is well")


@pytest.fixture
def desk(shell: Shell) -> Iterator[tuple[Shell, Desk]]:
    """Return a shell with a failed run of 25 model calls, and its model."""
    shell.write("agent.py", AGENT)
    with ProviderServer(model := Desk()) as server:
        shell.environment["PROVIDER"] = server.url
        done = shell.tracefork("record", "-o", "agent.tape", *AGENT_WORDS)
        assert done.exit == 0, done.err
        yield shell, model


def test_shrink_keeps_the_one_result_that_the_model_fails_on(desk: tuple[Shell, Desk]) -> None:
    """Of 25 calls, 4 tools and 13 lines, what the model fails on is left."""
    shell, model = desk
    done = shell.tracefork(
        "shrink",
        "agent.tape",
        GOOD,
        "--budget=200 calls",
        "--confirm=1",
        "--request=r.json",
        "--json",
    )
    assert done.exit == 0, done.out + done.err
    parts = {part["kind"]: (part["before"], part["kept"]) for part in done.document["parts"]}
    assert parts == {"model calls": (25, 2), "messages": (3, 1), "tools": (4, 1), "lines": (13, 1)}
    (_, result) = json.loads((shell.folder / "r.json").read_text())["messages"]
    assert result["content"] == "account 13 is overdrawn"
    assert done.document["calls"] == model.asked - 25 <= 200
    asked = model.asked
    replayed = shell.tracefork("replay", "agent.small.tape")
    assert replayed.exit == 0, replayed.err
    assert model.asked == asked
    small = shell.tracefork("show", "agent.small.tape", "--json").document
    assert small["exchanges"] == 3
    assert "refuse" in shell.tracefork("show", "agent.small.tape", "2").out


def test_shrink_without_a_budget_asks_no_model(desk: tuple[Shell, Desk]) -> None:
    """The last answer alone makes the program fail. The report says what that leaves open."""
    shell, model = desk
    done = shell.tracefork("shrink", "agent.tape", GOOD, "-o", "one.tape")
    assert done.exit == 0, done.err
    assert "model calls 1 of 25 · each one is needed" in done.out
    assert "no model was asked again" in done.out
    assert model.asked == 25
    assert shell.tracefork("replay", "one.tape").exit == 0
    again = shell.tracefork("shrink", "agent.tape", GOOD, "-o", "one.tape")
    assert (again.exit, "already exists" in again.err) == (2, True)


def test_shrink_refuses_a_recording_that_passes(desk: tuple[Shell, Desk]) -> None:
    """There is no failure to keep, so nothing is forked and nothing is written."""
    shell, model = desk
    done = shell.tracefork("shrink", "agent.tape", "--oracle=contains:refuse")
    assert (done.exit, "the recording itself does not fail" in done.err) == (2, True)
    assert model.asked == 25
    assert not (shell.folder / "agent.small.tape").exists()


def test_an_oracle_that_contradicts_itself_decides_nothing(desk: tuple[Shell, Desk]) -> None:
    """It fails each second run of the same recording."""
    shell, _ = desk
    shell.write(
        "oracles.py",
        "import pathlib\n\ndef flaky(outcome):\n    log = pathlib.Path('grades')\n"
        "    grades = log.read_text() if log.exists() else ''\n"
        "    log.write_text(grades + '.')\n    return len(grades) % 2 == 1\n",
    )
    done = shell.tracefork("shrink", "agent.tape", "--oracle=oracles:flaky")
    assert done.exit == 1, done.err
    assert "the oracle failed the recording 2 of 3 times" in done.out
    assert not (shell.folder / "agent.small.tape").exists()


def test_shrink_ends_with_its_budget_and_keeps_the_best(desk: tuple[Shell, Desk]) -> None:
    """Ten calls do not reach the end: what was found until then is on the tape."""
    shell, model = desk
    done = shell.tracefork("shrink", "agent.tape", GOOD, "--budget=10 calls", "--confirm=1")
    assert done.exit == 0, done.err
    assert "stopped: the budget is used up (10 calls)" in done.out
    assert "not finished" in done.out
    assert model.asked == 35
    assert shell.tracefork("replay", "agent.small.tape").exit == 0

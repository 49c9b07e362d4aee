"""A plain loop of an SDK calls its own functions: as named tools they run once, then never."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tracefork_core import Tape, blame, fork, record, replay, tool
from tracefork_testkit import ProviderServer

LOOP = """\
import asyncio
import json
import os
from pathlib import Path

import {sdk}


def charge_card(amount):
    with Path(__file__).with_name("charged.txt").open("a") as file:
        file.write(f"{{amount}}\\n")
    return f"charged {{amount}}"


TOOLS = {{"charge_card": charge_card}}
PROMPT = '@call charge_card {{"amount": 9}}\\n@then\\n@say It is paid.'
"""

OPENAI = (
    LOOP.format(sdk="openai")
    + """
SCHEMA = [{"type": "function", "function": {"name": "charge_card", "parameters": {"type": "object",
           "properties": {"amount": {"type": "integer"}}}}}]


def main():
    client = openai.OpenAI(base_url=os.environ["PROVIDER"] + "/v1", api_key="sk-none")
    messages = [{"role": "user", "content": PROMPT}]
    while True:
        answer = client.chat.completions.create(model="m", messages=messages, tools=SCHEMA)
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = TOOLS[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

"""
)

ANTHROPIC = (
    LOOP.format(sdk="anthropic").replace("def charge_card", "async def charge_card")
    + """
SCHEMA = [{"name": "charge_card", "input_schema": {"type": "object",
           "properties": {"amount": {"type": "integer"}}}}]


async def converse():
    messages = [{"role": "user", "content": PROMPT}]
    async with anthropic.AsyncAnthropic(base_url=os.environ["PROVIDER"], api_key="k") as client:
        while True:
            answer = await client.messages.create(
                model="m", max_tokens=64, messages=messages, tools=SCHEMA
            )
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return answer.content[0].text
            messages.append({"role": "assistant", "content": answer.model_dump()["content"]})
            results = await asyncio.gather(*(TOOLS[call.name](**call.input) for call in calls))
            messages.append({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call.id, "content": result}
                for call, result in zip(calls, results)
            ]})


def main():
    return asyncio.run(converse())
"""
)
AGENTS = {"openai": OPENAI, "anthropic": ANTHROPIC}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    with ProviderServer() as server:
        monkeypatch.setenv("PROVIDER", server.url)
        yield server


@pytest.fixture(params=AGENTS)
def agent(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """Import an agent, as a program that uses it does."""
    (tmp_path / "loop_agent.py").write_text(AGENTS[request.param])
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("loop_agent")
    del sys.modules["loop_agent"]


def charges(agent: ModuleType) -> int:
    return len(Path(str(agent.__file__)).with_name("charged.txt").read_text().splitlines())


NAMES: list[tuple[list[str], list[str]]] = [
    (["loop_agent:charge_card=write"], []),
    ([], ["loop_agent:TOOLS"]),
]


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize("named", NAMES, ids=["tools", "tools_of"])
def test_a_named_tool_of_a_loop_runs_once(
    named: tuple[list[str], list[str]], agent: ModuleType, tape: Path
) -> None:
    """Recorded, replayed ten times, and forked behind it."""
    tools, tables = named
    with record(tape, tools=tools, tools_of=tables):
        assert agent.main() == "It is paid."
    for _ in range(10):
        with replay(tape) as run:
            assert agent.main() == "It is paid."
        assert run.digest == run.tape.digest
    with Tape.open(tape) as opened:
        assert [exchange.aside.seam == "tool" for exchange in opened.exchanges] == [
            False,
            True,
            False,
        ]
    with fork(tape, at=2, replace="Paid!"):
        assert agent.main() == "Paid!"
    assert charges(agent) == 1


@pytest.mark.usefixtures("provider")
def test_without_a_name_the_tool_runs_in_each_replay(agent: ModuleType, tape: Path) -> None:
    """The negative control."""
    with record(tape):
        agent.main()
    for _ in range(2):
        with replay(tape):
            agent.main()
    with fork(tape, at=1, replace="Paid!", rerun_tools=True):
        agent.main()
    assert charges(agent) == 4


@pytest.mark.usefixtures("provider")
def test_blame_runs_no_named_tool(agent: ModuleType, tape: Path) -> None:
    """Its forks find the names on the tape of the run."""
    with record(tape, tools=["loop_agent:charge_card=write"]):
        agent.main()
    blame(tape, agent.main, oracle=lambda text: text == "refused", writes="stub", budget="9 calls")
    assert charges(agent) == 1


def test_a_named_tool_below_another_exchange_was_called(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is part of that exchange, and the receipt does not say that it had no effect."""
    (tmp_path / "till.py").write_text("def pay():\n    return 'paid'\n")
    monkeypatch.syspath_prepend(tmp_path)
    till = importlib.import_module("till")

    @tool(effect="write")
    def buy() -> object:
        return till.pay()

    try:
        with record(tape, tools=["till:pay"]) as run:
            buy()
        assert run.receipt is not None
        assert (run.receipt.exchanges, run.receipt.unused_tools) == (1, [])
        with record(tape, overwrite=True, tools=["till:pay"]) as run:
            pass
        assert run.receipt is not None
        assert run.receipt.unused_tools == ["--tool till:pay (not called in this process)"]
    finally:
        del sys.modules["till"]

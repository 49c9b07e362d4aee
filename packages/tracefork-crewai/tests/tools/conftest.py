"""Note which tools of a test ran, and make crews that call them natively or by ReAct."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_testkit import ModelRequest, ProviderServer, Reply
from tracefork_testkit.directives import directed
from tracefork_testkit.script import Outcome

WAYS = ("native", "react")
_ACTION = re.compile(r"@call (\w+) (\{.*\})")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `way` once for agents that call functions, and once for ReAct."""
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", WAYS)


class Ran(list[str]):
    """The calls that ran for real, in no order: some tools run side by side."""

    def now(self) -> list[str]:
        """Return the calls since this method was last called."""
        done = sorted(self)
        self.clear()
        return done


@pytest.fixture
def ran() -> Ran:
    """The list to which the tools of the test append when they run for real."""
    return Ran()


@pytest.fixture
def llm(llm: Callable[..., Any]) -> Callable[..., Any]:
    """Make an LLM whose connections close after each answer: CrewAI does not close its clients."""
    return partial(llm, default_headers={"Connection": "close"})


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider that calls tools as the prompt says, as functions or in the text of ReAct."""
    with ProviderServer(_acting, nondeterministic=True) as server:
        yield server


def _acting(request: ModelRequest) -> Outcome:
    text = request.system + "\n".join(message.text for message in request.messages)
    if "Action Input:" not in request.system + text:
        return directed(request)
    actions = _ACTION.findall(text)
    done = sum("\nObservation:" in message.text for message in request.messages)
    if done >= len(actions):
        return Reply(f"Thought: I know.\nFinal Answer: Done {done}.")
    name, arguments = actions[done]
    return Reply(f"Thought: go.\nAction: {name}\nAction Input: {arguments}\n")


@pytest.fixture
def calling(crew: Any, llm: Any) -> Callable[..., Callable[[], Any]]:
    """Return a function that runs a new crew of one task, whose agent calls tools in a way."""

    def make(
        way: str, calls: str, tools: Callable[[], list[Any]], **options: Any
    ) -> Callable[[], Any]:
        def run() -> Any:
            model = llm()
            if way == "react":
                object.__setattr__(model, "supports_function_calling", lambda: False)
            prompt = f"{calls}\n@then\n@say Done."
            agents = {"tools": tools(), **options.get("agents_", {})}
            others = {name: option for name, option in options.items() if name != "agents_"}
            return crew(help=prompt, llm_=model, agents_=agents, **others).kickoff()

        return run

    return make


@pytest.fixture
def prompts(server: ProviderServer) -> Callable[[], str]:
    """Return all prompts that models received live."""

    def read() -> str:
        messages = [part for asked in server.requests for part in asked.json()["messages"]]
        return "\n".join(str(message["content"]) for message in messages)

    return read


@pytest.fixture
def exchanges(tape: Path) -> Callable[[], list[tuple[str, Any]]]:
    """Read the tool calls on the tape: their names and arguments."""

    def read() -> list[tuple[str, Any]]:
        with tracefork.Tape.open(tape) as opened:
            return [
                (exchange.url.removeprefix("tool:"), json.loads(exchange.request_body))
                for exchange in opened.exchanges
                if exchange.method == "CALL"
            ]

    return read

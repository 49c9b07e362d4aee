"""Function tools run once, below everything that the SDK does around them."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agents import (
    ModelRetrySettings,
    ModelSettings,
    RunContextWrapper,
    RunHooks,
    Runner,
    RunState,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
)
from pydantic import BaseModel

import tracefork_core as tracefork
from tracefork_openai_agents import leave_live

Call = Callable[..., Any]
CALLS = "@call work {}\n@then\n@say Done."


class Weather(BaseModel):
    city: str
    degrees: float


@dataclass
class Cart:
    items: list[str]


class Opaque:
    def __str__(self) -> str:
        return "something opaque"


async def text() -> list[Any]:
    return [ToolOutputText(text="sunny"), ToolOutputImage(image_url="https://example.com/a.png")]


def model() -> Weather:
    return Weather(city="Rome", degrees=21.5)


def items() -> Cart:
    return Cart(["tea"])


def opaque():  # type: ignore[no-untyped-def] # a function as users write it
    return Opaque()


def failing() -> str:
    raise LookupError("no such city")


@pytest.mark.parametrize("function", [text, model, items, opaque, failing])
def test_results_of_all_kinds_are_given_again(
    agent: Call, ask: Call, twice: Call, function: Any
) -> None:
    """Classes of the SDK, models and dataclasses are rebuilt; others are the text for the model."""
    ran: list[str] = []

    def noting(context: RunContextWrapper[Any], error: Exception) -> str:
        ran.append("failed")
        return f"failed: {error}"

    tool = function_tool(function, name_override="work", failure_error_function=noting)
    real = tool.on_invoke_tool

    def run() -> str:
        result = ask(agent("Helper", CALLS, tools=[tool]), "Go on.")
        return str([getattr(item, "output", None) for item in result.new_items])

    recorded, again = twice(run)
    assert recorded == again
    assert len(ran) == (1 if function is failing else 0)
    assert tool.on_invoke_tool is real


def test_tools_of_one_turn_replay_in_any_order(agent: Call, ask: Call, twice: Call) -> None:
    """Calls run at once and end in an order of their own; equal calls get their own results."""
    calls = [0]

    async def wait(seconds: float) -> int:
        """Wait."""
        calls[0] += 1
        await asyncio.sleep(seconds)
        return calls[0]

    words = "\n".join(f'@call wait {{"seconds": {seconds}}}' for seconds in (0.05, 0.01, 0.01))
    made = agent("Helper", f"{words}\n@then\n@say Done.", tools=[function_tool(wait)])
    twice(lambda: str(ask(made, "Go on.").to_input_list()))
    assert calls == [3]


@pytest.mark.parametrize("needs", [True, "callable"])
def test_an_approval_interrupts_as_recorded(agent: Call, twice: Call, needs: Any) -> None:
    """A replay asks for it as well, and then does not run the tool."""
    ran: list[str] = []
    asked: list[str] = []

    async def required(context: Any, arguments: Any, call_id: str) -> bool:
        asked.append("asked")
        return True

    def work() -> str:
        ran.append("work")
        return f"worked {len(ran)}"

    tool = function_tool(work, needs_approval=required if needs == "callable" else True)

    async def approved() -> str:
        made = agent("Helper", CALLS, tools=[tool])
        result = await Runner.run(made, "Go on.")
        (interruption,) = result.interruptions
        state = await RunState.from_string(made, result.to_state().to_string())
        (interruption,) = state.get_interruptions()
        state.approve(interruption)
        return str((await Runner.run(made, state)).to_input_list())

    recorded, again = twice(lambda: asyncio.run(approved()))
    assert recorded == again
    assert ran == ["work"]
    assert len(asked) == (2 if needs == "callable" else 0)


def context_agent(agent: Call, tool: Any) -> Any:
    def instructions(context: RunContextWrapper[Any], of: Any) -> str:
        return f"{CALLS}\nKnown: {context.context}"

    return agent("Helper", instructions, tools=[tool])


def remembering(ran: list[str]) -> Any:
    def work(context: RunContextWrapper[Any]) -> str:
        """Remember something in the context of the run."""
        ran.append("work")
        context.context["name"] = "Ann"
        return "remembered"

    return function_tool(work)


@pytest.mark.parametrize("compare", [False, True])
def test_a_tool_that_changes_the_context_can_run_again(
    agent: Call, ask: Call, tape: Path, twice: Call, compare: bool
) -> None:
    """It runs in the replay too, and the instructions see what it changed."""
    ran: list[str] = []
    tool = leave_live(remembering(ran), compare=compare)
    twice(lambda: str(ask(context_agent(agent, tool), "Go on.", context={}).to_input_list()))
    assert ran == ["work", "work"]
    with tracefork.Tape.open(tape) as opened:
        assert len(opened.exchanges) == (3 if compare else 2)


def test_a_stubbed_tool_that_changes_the_context_is_named(
    agent: Call, ask: Call, tape: Path
) -> None:
    """The recording warns, and the replay diverges in the prompt that lacks the change."""
    tool = remembering([])
    with pytest.warns(UserWarning, match=r"the tool work changed the run's context.*leave_live"):
        with tracefork.record(tape):
            ask(context_agent(agent, tool), "Go on.", context={})
    with pytest.raises(tracefork.DivergenceError, match="Known: "), tracefork.replay(tape):
        ask(context_agent(agent, tool), "Go on.", context={})


def test_a_tool_that_leaves_the_context_alone_is_not_named(
    agent: Call, ask: Call, tape: Path
) -> None:
    """The negative control of the warning."""
    tool = function_tool(model, name_override="work")
    with warnings.catch_warnings(record=True) as caught, tracefork.record(tape):
        ask(context_agent(agent, tool), "Go on.", context={"name": "Ann"})
    assert not [warning for warning in caught if "leave_live" in str(warning.message)]


def test_a_compared_tool_that_returns_something_else_diverges(
    agent: Call, ask: Call, tape: Path
) -> None:
    """The difference is shown in the tool's result, not in the prompt that follows."""
    results = ["one", "two"]
    tool = leave_live(function_tool(lambda: results.pop(0), name_override="work"), compare=True)
    with tracefork.record(tape):
        ask(agent("Helper", CALLS, tools=[tool]), "Go on.")
    with pytest.raises(tracefork.DivergenceError, match="/result"), tracefork.replay(tape):
        ask(agent("Helper", CALLS, tools=[tool]), "Go on.")


class Asked(RunHooks[Any]):
    """Counts how often the SDK asks a model of the outer agent, or asks whether to try again."""

    def __init__(self) -> None:
        self.count = 0

    async def on_llm_start(self, *_: Any) -> None:
        self.count += 1

    def policy(self, _: Any) -> bool:
        self.count += 1
        return True


def nested(agent: Call, prompt: str, asked: Asked) -> Any:
    specialist = agent("Specialist", prompt).as_tool("work", "Ask it.")
    words = '@call work {"input": "Go on."}\n@then\n@say Done.'
    return agent("Helper", words, tools=[specialist])


def retrying(agent: Call, prompt: str, asked: Asked) -> Any:
    backoff: Any = {"initial_delay": 30, "max_delay": 30}
    settings = ModelRetrySettings(max_retries=3, policy=asked.policy, backoff=backoff)
    return agent("Helper", prompt, model_settings=ModelSettings(retry=settings))


def run_noting(raised: list[Exception], work: Any) -> None:
    """Run until the end, and note what it raises."""
    try:
        asyncio.run(work)
    except Exception as error:
        raised.append(error)


@pytest.mark.parametrize(("make", "times"), [(nested, 1), (retrying, 2)])
def test_a_divergence_ends_the_run_at_once(
    agent: Call, tape: Path, make: Any, times: int, server: Any
) -> None:
    """Neither a retry nor the error text of an agent as a tool hides it."""

    async def run(prompt: str, asked: Asked) -> None:
        made = make(agent, prompt, asked)
        await asyncio.wait_for(Runner.run(made, "Go on.", hooks=asked), 5)

    with tracefork.record(tape):
        asyncio.run(run("@say One.", Asked()))
    recorded, asked = len(server.requests), Asked()
    raised: list[Exception] = []
    with pytest.raises(tracefork.DivergenceError), tracefork.replay(tape):
        run_noting(raised, run("@say Two.", asked))  # The end of the replay raises it anyway.
    assert [isinstance(error, tracefork.DivergenceError) for error in raised] == [True]
    assert asked.count == times
    assert len(server.requests) == recorded

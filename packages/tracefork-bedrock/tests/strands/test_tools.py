"""A tool runs once: whatever its kind, a replay gives its recorded result and does not call it."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from strands import Agent, ToolContext, tool
from strands.hooks import AfterToolCallEvent, BeforeToolCallEvent
from strands.types.tools import AgentTool

import tracefork_core as tracefork

Call = Callable[..., Any]
RUNS = count(1)
CANCELLATION: dict[str, Any] = (
    {"message": "Enough.", "after_current_tools": True}
    if "message" in inspect.signature(Agent.cancel).parameters
    else {}
)
"""What this version of Strands can say when it cancels an agent."""


@tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"{a + b} in run {next(RUNS)}"


@tool
async def add_later(a: int, b: int) -> dict[str, Any]:
    """Add two numbers later."""
    await asyncio.sleep(0.01)
    return {"sum": a + b, "run": next(RUNS)}


@tool
async def add_slowly(a: int, b: int) -> AsyncIterator[Any]:
    """Add two numbers and tell how far it is."""
    for done in range(3):
        yield {"done": done, "run": next(RUNS)}
    yield f"{a + b} in run {next(RUNS)}"


@tool
def draw(a: int, b: int) -> dict[str, Any]:
    """Return an image, a document and data."""
    image = {"format": "png", "source": {"bytes": b"\x89PNG" + bytes([next(RUNS) % 250])}}
    return {
        "status": "success",
        "content": [{"json": {"sum": a + b, "none": None}}, {"image": image}, {"text": "drawn"}],
    }


@tool
def fail(a: int, b: int) -> str:
    """Raise an error of the program's own."""
    raise Broken(f"broken in run {next(RUNS)}")


@tool
def refuse(a: int, b: int) -> str:
    """Raise an error that Strands knows."""
    raise ValueError(f"refused in run {next(RUNS)}")


class Broken(Exception):
    """An error that only this module knows."""


class Counter(AgentTool):
    """A tool with a class of its own, whose last value is the result."""

    tool_name = "counter"
    tool_type = "python"
    tool_spec = {  # noqa: RUF012 - as Strands' own tools declare it
        "name": "counter",
        "description": "Count.",
        "inputSchema": {"json": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    }

    async def stream(self, tool_use: Any, invocation_state: Any, **options: Any) -> Any:
        yield {"done": next(RUNS)}
        content = [{"text": f"counted in run {next(RUNS)}"}]
        yield {"toolUseId": tool_use["toolUseId"], "status": "success", "content": content}


def plain_tool(tool_use: Any, **state: Any) -> Any:
    """Return what a tool of a module with TOOL_SPEC returns."""
    content = [{"text": f"{tool_use['input']} in run {next(RUNS)}"}]
    return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": content}


def plain() -> AgentTool:
    """Make such a tool."""
    from strands.tools.tools import PythonAgentTool

    schema = {"json": {"type": "object", "properties": {}}}
    spec = {"name": "plain", "description": "Plain.", "inputSchema": schema}
    return PythonAgentTool("plain", spec, plain_tool)


def results(agent: Agent) -> list[Any]:
    """Return what the model got from tools."""
    blocks = [block for message in agent.messages for block in message["content"]]
    return [block["toolResult"] for block in blocks if "toolResult" in block]


@pytest.mark.parametrize(
    "made",
    [add, add_later, add_slowly, draw, fail, refuse, Counter(), plain()],
    ids=lambda it: it.tool_name,
)
def test_a_tool_runs_once(agent: Call, twice: Call, made: Any) -> None:
    """Its result, its progress and what the model reads are the same, and it has run once."""

    def run() -> Any:
        helper = agent("Helper", f'@call {made.tool_name} {{"a": 2, "b": 3}}\n@then\n@say Done.')
        helper.tool_registry.process_tools([made])
        progress: list[Any] = []
        helper.callback_handler = lambda **event: progress.append(event.get("tool_stream_event"))
        answer = str(helper("Go on."))
        told = [it["data"] for it in progress if it]
        return answer, results(helper), told

    before = next(RUNS)
    recorded, again = twice(run)
    assert again == recorded
    assert next(RUNS) > before + 1
    assert f"run {before + 1}" in str(recorded) or made.tool_name not in ("add", "fail", "refuse")


def test_an_error_reads_as_without_a_session(agent: Call, twice: Call) -> None:
    """Strands names the class of an error to the model, and that is kept."""

    def run() -> Any:
        helper = agent("Helper", "@call fail {}\n@then\n@say Done.")
        helper.tool_registry.process_tools([fail])
        helper("Go on.")
        return results(helper)[0]["content"][0]["text"].partition(" in run")[0]

    alone = run()
    assert twice(run) == (alone, alone)


def test_a_tool_that_is_declared_to_read_runs_in_a_fork(agent: Call, tape: Path) -> None:
    """The declaration stands on the function, below Strands' own decorator."""
    asked: list[str] = []

    def look_up(order: str) -> str:
        """Look an order up."""
        asked.append(order)
        return "It was delivered."

    def run(function: Call) -> None:
        words = '@call look_up {"order": "17"}\n@then\n@say Done.'
        agent("Helper", words, tools=[tool(function)])("Go on.")

    for function in (tracefork.tool(effect="read")(look_up), look_up):
        with tracefork.record(tape, overwrite=True):
            run(function)
        asked.clear()
        if function is look_up:
            with pytest.raises(tracefork.TraceforkError, match="look_up"):
                with tracefork.fork(tape, at=0, redraw=True):
                    run(function)
        else:
            with tracefork.fork(tape, at=0, redraw=True):
                run(function)
        assert asked == ([] if function is look_up else ["17"])


def test_several_tools_at_once_are_told_apart(agent: Call, twice: Call) -> None:
    """Equal calls run in parallel, end in the other order, and each keeps its own result."""
    ended = threading.Event()

    @tool
    def wait(n: int) -> str:
        """Wait for the others."""
        if n == 1:
            ended.wait(5)
        else:
            ended.set()
        return f"{n} in run {next(RUNS)}"

    def run() -> Any:
        calls = "\n".join(f'@call wait {{"n": {n}}}' for n in (1, 2, 2))
        helper = agent("Helper", f"{calls}\n@then\n@say Done.", tools=[wait])
        helper("Go on.")
        return results(helper)

    recorded, again = twice(run)
    assert again == recorded
    assert len({it["content"][0]["text"] for it in recorded}) == 3


def test_what_a_tool_changes_changes_in_a_replay_too(agent: Call, twice: Call) -> None:
    """State of the agent, state of the run and a cancellation; the tool itself does not run."""

    @tool(context=True)
    def note(tool_context: ToolContext) -> str:
        """Note something."""
        tool_context.agent.state.set("seen", {"run": next(RUNS)})
        tool_context.agent.state.delete("old")
        tool_context.invocation_state["log"].append(next(RUNS))
        tool_context.invocation_state["more"] = next(RUNS)
        tool_context.agent.cancel(**CANCELLATION)
        return "noted"

    def run() -> Any:
        helper = agent("Helper", "@call note {}\n@then\n@say Done.", tools=[note])
        helper.state.set("old", 1)
        log: list[int] = []
        state: dict[str, Any] = {"log": log}
        result = helper("Go on.", invocation_state=state)
        return helper.state.get(), log, state.get("more"), result.stop_reason, str(result)

    recorded, again = twice(run)
    assert again == recorded
    assert set(recorded[0]) == {"seen"}
    assert recorded[3] == "cancelled"


class Noting(Counter):
    """A tool with a class of its own, which fails as its function does."""

    tool_name = "note"
    tool_spec = {**Counter.tool_spec, "name": "note"}  # noqa: RUF012 - as Strands declares it

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def stream(self, tool_use: Any, invocation_state: Any, **options: Any) -> Any:
        invocation_state["agent"].state.set("seen", next(RUNS))
        yield {"done": 1}
        raise self._error


@pytest.mark.parametrize("error", [ValueError("no"), Broken("no"), OSError(2, "no")])
@pytest.mark.parametrize("has_class", [False, True])
def test_what_a_tool_changes_before_it_fails_changes_in_a_replay_too(
    agent: Call, twice: Call, error: Exception, has_class: bool
) -> None:
    """The model and the hooks get the error that they got in the recording."""

    @tool(context=True)
    def note(tool_context: ToolContext) -> str:
        """Note something, and fail."""
        tool_context.agent.state.set("seen", next(RUNS))
        raise error

    def run() -> Any:
        made = Noting(error) if has_class else note
        helper = agent("Helper", "@call note {}\n@then\n@say Done.", tools=[made])
        raised: list[Any] = []
        helper.hooks.add_callback(AfterToolCallEvent, lambda it: raised.append(it.exception))
        helper("Go on.")
        return helper.state.get(), results(helper)[0]["content"], list(map(repr, raised))

    recorded, again = twice(run)
    assert again == recorded
    assert recorded[0]["seen"]
    assert "no" in recorded[2][0]


def test_hooks_run_in_a_replay(agent: Call, twice: Call) -> None:
    """They may change the arguments and the result of a call, cancel it or have it made again."""

    def run() -> Any:
        calls = "\n".join(f'@call add {{"a": {n}, "b": 0}}' for n in (1, 2, 3))
        helper = agent("Helper", f"{calls}\n@then\n@say Done.", tools=[add])
        heard: list[Any] = []

        def before(event: BeforeToolCallEvent) -> None:
            heard.append(event.tool_use["input"]["a"])
            if event.tool_use["input"]["a"] == 1:
                event.cancel_tool = "not this one"
            event.tool_use["input"]["b"] = 10

        def after(event: AfterToolCallEvent) -> None:
            heard.append(event.result["content"][0]["text"])
            if event.tool_use["input"]["a"] == 3 and heard.count(3) < 2:
                event.retry = True
            event.result["content"][0]["text"] += "!"

        helper.hooks.add_callback(BeforeToolCallEvent, before)
        helper.hooks.add_callback(AfterToolCallEvent, after)
        helper("Go on.")
        return sorted(map(str, heard)), results(helper)

    recorded, again = twice(run)
    assert again == recorded
    assert recorded[1][0]["content"][0]["text"] == "not this one!"
    assert recorded[1][1]["content"][0]["text"].startswith("12 in run")


def test_an_interrupt_asks_again_in_a_replay(agent: Call, twice: Call, tape: Any) -> None:
    """A tool asks a person; the answer is part of the call, so another answer is a divergence."""

    @tool(context=True)
    def pay(amount: int, tool_context: ToolContext) -> str:
        """Pay if a person agrees."""
        if tool_context.interrupt("approval", reason={"amount": amount}) != "yes":
            return f"not paid in run {next(RUNS)}"
        return f"paid in run {next(RUNS)}"

    async def ask(answer: str) -> Any:
        helper = agent("Helper", '@call pay {"amount": 5}\n@then\n@say Done.', tools=[pay])
        asked = await helper.invoke_async("Go on.")
        assert asked.stop_reason == "interrupt"
        (interrupt,) = asked.interrupts
        response = {"interruptId": interrupt.id, "response": answer}
        await helper.invoke_async([{"interruptResponse": response}])
        return interrupt.name, interrupt.reason, results(helper)

    def run(answer: str = "yes") -> Any:
        return asyncio.run(ask(answer))

    recorded, again = twice(run)
    assert again == recorded
    assert recorded[:2] == ("approval", {"amount": 5})
    with (
        pytest.raises(tracefork.DivergenceError),
        tracefork.replay(tape),
    ):
        run("no")


def test_the_program_may_call_a_tool_itself(agent: Call, twice: Call, paths: Call) -> None:
    """Objects that it passes besides the declared arguments are not compared."""

    def run() -> Any:
        helper = agent("Helper", "@say Done.", tools=[add])
        return helper.tool.add(a=1, b=2, agent=helper)["content"]

    recorded, again = twice(run)
    assert again == recorded
    assert paths() == ["tool:add"]

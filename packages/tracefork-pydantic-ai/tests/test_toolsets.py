"""Toolsets of each kind: the call at the bottom is one exchange, and what is around it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.capabilities import Hooks
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    FunctionToolset,
    ToolsetTool,
    WrapperToolset,
)
from pydantic_core import SchemaValidator, core_schema

import tracefork_core as tracefork

Call = Callable[..., Any]

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def work(n: int = 1) -> str:
    ran.append("work")
    return f"worked {n + len(ran)}"


class Counting(WrapperToolset[Any]):
    """A wrapper of the program's: it runs in replays, too."""

    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        ran.append("wrapper")
        return f"wrapped: {await super().call_tool(name, tool_args, ctx, tool)}"


class Own(AbstractToolset[Any]):
    """A toolset of the program's that does the work itself."""

    @property
    def id(self) -> str:
        return "own"

    async def get_tools(self, ctx: Any) -> dict[str, ToolsetTool[Any]]:
        tool = ToolsetTool(
            toolset=self,
            tool_def=ToolDefinition(name="work", parameters_json_schema={"type": "object"}),
            max_retries=1,
            args_validator=SchemaValidator(core_schema.dict_schema()),
        )
        return {"work": tool}

    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        ran.append("work")
        return {"n": tool_args.get("n", 0) + len(ran)}


class Careful(FunctionToolset[Any]):
    """A toolset of functions that does more around each call: all of it is the exchange."""

    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        ran.append("careful")
        return await super().call_tool(name, tool_args, ctx, tool)


def functions() -> FunctionToolset[Any]:
    return FunctionToolset([work])


async def described(ctx: RunContext[Any], tools: list[ToolDefinition]) -> list[ToolDefinition]:
    ran.append("prepared")
    return [replace(tool, description=f"Described {len(ran) > 0}.") for tool in tools]


TOOLSETS: dict[str, tuple[Callable[[], AbstractToolset[Any]], str, list[str], list[str]]] = {
    "function": (functions, "work", ["work"], []),
    "combined": (lambda: CombinedToolset([functions()]), "work", ["work"], []),
    "filtered": (lambda: functions().filtered(lambda ctx, it: True), "work", ["work"], []),
    "prefixed": (lambda: functions().prefixed("pre"), "pre_work", ["work"], []),
    "renamed": (lambda: functions().renamed({"new": "work"}), "new", ["work"], []),
    "prepared": (
        lambda: functions().prepared(described),
        "work",
        ["prepared", "work", "prepared"],
        ["prepared", "prepared"],
    ),
    "wrapper": (lambda: Counting(functions()), "work", ["wrapper", "work"], ["wrapper"]),
    "own": (Own, "work", ["work"], []),
    "careful": (lambda: Careful([work]), "work", ["careful", "work"], []),
}


@pytest.mark.parametrize("kind", TOOLSETS)
def test_the_work_of_a_toolset_is_done_once(
    agent: Call, ask: Call, twice: Call, paths: Call, tape: Any, kind: str
) -> None:
    """What lies above it is code of the agent. The step has the name that the model knows."""
    make, name, first, second = TOOLSETS[kind]
    words = f'@call {name} {{"n": 2}}\n@then\n@say Done.'

    def run() -> str:
        return str(ask(agent("helper", words, toolsets=[make()])))

    recorded, again = twice(run)
    assert recorded == again
    assert ran == first + second
    (tool,) = [path for path in paths() if "tool:" in path]
    assert tool.endswith(f"tool:{name}")
    with tracefork.Tape.open(tape) as opened:
        assert [it.request.url for it in opened.exchanges if it.aside.seam == "tool"] == [
            f"tool:{name}"
        ]


def test_validators_of_arguments_run_again(agent: Call, ask: Call, twice: Call) -> None:
    """They are code of the agent, and lie above the tool; each may ask the model to retry."""

    def positive(ctx: RunContext[Any], n: int) -> None:
        ran.append("validated")
        if n < 0:
            raise ModelRetry("It must be positive.")

    def run() -> str:
        toolset: FunctionToolset[Any] = FunctionToolset()
        toolset.add_function(work, args_validator=lambda ctx, n=1: positive(ctx, n))
        words = '@call work {"n": -2}\n@then\n@call work {"n": "x"}\n@then\n@call work {"n": 2}'
        return str(
            ask(agent("helper", f"{words}\n@then\n@say Done.", toolsets=[toolset], retries=5))
        )

    recorded, again = twice(run)
    assert recorded == again
    assert "It must be positive." in recorded
    assert ran == ["validated", "validated", "work", "validated", "validated"]


@pytest.mark.parametrize(("metadata", "runs"), [({"effect": "read"}, True), (None, False)])
def test_a_fork_runs_only_what_is_known_to_read(
    agent: Call, ask: Call, tape: Any, metadata: Any, runs: bool
) -> None:
    """The metadata of a tool says it; without that it may be a write, and the fork is refused."""
    toolset: FunctionToolset[Any] = FunctionToolset()
    toolset.add_function(work, metadata=metadata)
    helper = agent("helper", "@call work {}\n@then\n@say Done.", toolsets=[toolset])
    with tracefork.record(tape):
        ask(helper)
    ran.clear()
    if runs:
        with tracefork.fork(tape, 0):
            ask(helper)
        assert ran == ["work"]
    else:
        with pytest.raises(tracefork.WriteError), tracefork.fork(tape, 0):
            ask(helper)
        assert ran == []


def test_an_effect_must_be_one(agent: Call, ask: Call, tape: Any) -> None:
    """A typing error would let a fork repeat a write."""
    toolset: FunctionToolset[Any] = FunctionToolset()
    toolset.add_function(work, metadata={"effect": "reads"})
    with pytest.raises(tracefork.UsageError, match="effect of tool work"), tracefork.record(tape):
        ask(agent("helper", "@call work {}\n@then\n@say Done.", toolsets=[toolset]))


def test_a_fork_gives_a_tool_another_result(agent: Call, ask: Call, tape: Any) -> None:
    """A text takes the place of whatever the tool returned."""
    helper = agent("helper", "@call work {}\n@then\n@say Done.", tools=[work])
    with tracefork.record(tape):
        ask(helper)
    with tracefork.fork(tape, "tool:work", tracefork.Replace(text="Closed on Mondays.")):
        assert "Closed on Mondays." in ask(helper)
    assert ran == ["work"]


def test_a_fork_gives_a_tool_other_arguments(agent: Call, ask: Call, tape: Any) -> None:
    """They are validated, so the tool gets what it expects."""
    toolset: FunctionToolset[Any] = FunctionToolset()
    toolset.add_function(work, metadata={"effect": "read"})
    helper = agent("helper", '@call work {"n": 2}\n@then\n@say Done.', toolsets=[toolset])
    with tracefork.record(tape):
        ask(helper)
    with tracefork.fork(tape, "tool:work", tracefork.Edit(values={"/n": 40})):
        assert "worked 42" in ask(helper)


class Confused(WrapperToolset[Any]):
    """Passes on other arguments than the model's."""

    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        return await super().call_tool(name, {"n": 3}, ctx, tool)


def test_a_miss_in_a_tool_ends_the_run(agent: Call, ask: Call, tape: Any) -> None:
    """Hooks that answer errors of tools do not answer that of the session."""

    async def answered(ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Any) -> str:
        ran.append("hook")
        return "never mind"

    def run(toolset: Any) -> None:
        hooks: Hooks[Any] = Hooks(tool_execute_error=answered)
        words = '@call work {"n": 2}\n@then\n@say Done.'
        ask(agent("helper", words, toolsets=[toolset], capabilities=[hooks]))

    with tracefork.record(tape):
        run(functions())
    with pytest.raises(tracefork.DivergenceError, match="tool:work"), tracefork.replay(tape):
        run(Confused(functions()))
    assert ran == ["work", "hook"]

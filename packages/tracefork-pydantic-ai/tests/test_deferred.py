"""Calls that wait for a person or another program: asked for, and answered in a second run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import (
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ApprovalRequiredToolset, ExternalToolset, FunctionToolset

Call = Callable[..., Any]
CALL = '@call work {"n": 2}\n@then\n@say Done.'

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


def work(n: int) -> str:
    ran.append("work")
    return f"worked {n + len(ran)}"


def asking(ctx: RunContext[Any], n: int) -> str:
    ran.append("asking")
    if not ctx.tool_call_approved:
        raise ApprovalRequired(metadata={"why": f"{n} is much"})
    return f"approved {n}"


def deferring(ctx: RunContext[Any], n: int) -> str:
    ran.append("deferring")
    raise CallDeferred(metadata={"job": n * 100})


def by_declaration() -> Any:
    toolset: FunctionToolset[Any] = FunctionToolset()
    toolset.add_function(work, requires_approval=True)
    return toolset


def by_the_tool(function: Any) -> Any:
    toolset: FunctionToolset[Any] = FunctionToolset()
    toolset.add_function(function, name="work")
    return toolset


def external() -> Any:
    return ExternalToolset([ToolDefinition(name="work", parameters_json_schema={"type": "object"})])


CASES: dict[str, tuple[Callable[[], Any], Any, list[str], str]] = {
    "declared": (by_declaration, True, ["work"], "worked 3"),
    "other arguments": (by_declaration, ToolApproved(override_args={"n": 7}), ["work"], "worked 8"),
    "denied": (by_declaration, ToolDenied(message="Not today."), [], "Not today."),
    "wrapper": (lambda: ApprovalRequiredToolset(by_the_tool(work)), True, ["work"], "worked 3"),
    "raised": (lambda: by_the_tool(asking), True, ["asking", "asking"], "approved 2"),
    "deferred": (lambda: by_the_tool(deferring), "from the job", ["deferring"], "from the job"),
    "external": (external, "from outside", [], "from outside"),
    "retry": (external, ModelRetry("Not that."), [], "Not that."),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_deferred_call_is_asked_for_and_answered_as_recorded(
    agent: Call, twice: Call, kind: str
) -> None:
    """What waits, its metadata, and the run that goes on; the tool runs in the recording only."""
    make, answer, runs, result = CASES[kind]

    async def talk() -> tuple[str, str]:
        helper = agent("helper", CALL, toolsets=[make()], output_type=[str, DeferredToolRequests])
        asked = await helper.run("Go on.")
        waiting = asked.output
        assert isinstance(waiting, DeferredToolRequests)
        given = DeferredToolResults()
        for call in waiting.approvals:
            given.approvals[call.tool_call_id] = answer
        for call in waiting.calls:
            given.calls[call.tool_call_id] = answer
        metadata = str(getattr(waiting, "metadata", None))
        done = await helper.run(message_history=asked.all_messages(), deferred_tool_results=given)
        return metadata, done.all_messages_json().decode()

    recorded, again = twice(lambda: asyncio.run(talk()))
    assert recorded == again
    assert result in recorded[1]
    assert ran == runs
    assert ("is much" in recorded[0]) == (kind == "raised")
    assert ("200" in recorded[0]) == (kind == "deferred")

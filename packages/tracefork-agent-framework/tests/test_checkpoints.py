"""Workflows wait for people and resume from checkpoints, and a replay leaves those alone.

Agent Framework 1.0 cannot read the annotations of handlers as text.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    AgentExecutor,
    AgentExecutorResponse,
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
)

Call = Callable[..., Any]


class Approver(Executor):
    """A node that asks a person."""

    @handler
    async def ask(self, said: AgentExecutorResponse, ctx: WorkflowContext[str, str]) -> None:
        """Ask whether the text is good."""
        await ctx.request_info(request_data=said.agent_response.text, response_type=str)

    @response_handler
    async def answered(
        self, original_request: str, response: str, ctx: WorkflowContext[str, str]
    ) -> None:
        """Give what the person said."""
        await ctx.yield_output(f"{original_request} {response}")


def build(agent: Call, storage: Any = None) -> Any:
    """Return a workflow that writes, and asks a person."""
    writer = AgentExecutor(agent("writer", "@say A draft."), id="writer")
    approver = Approver(id="approver")
    options = {} if storage is None else {"checkpoint_storage": storage}
    builder = WorkflowBuilder(name="desk", start_executor=writer, **options)
    return builder.add_edge(writer, approver).build()


def test_a_workflow_that_waits_for_a_person_resumes_in_a_replay(
    agent: Call, twice: Call, paths: Call
) -> None:
    """The person answers again, by the id of the recorded request."""

    async def run() -> Any:
        workflow = build(agent)
        first = await workflow.run("Go on.")
        (request,) = first.get_request_info_events()
        second = await workflow.run(responses={request.request_id: "Good."})
        return second.get_outputs(), request.request_id

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
    assert recorded[0][0].endswith("Good.")
    assert paths() == ["flow:desk ▸ agent:writer ▸ model:gpt-5-mini"]


def files(folder: Path) -> dict[str, int]:
    """Return the files of a folder, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


async def begin(agent: Call, storage: Any) -> Any:
    """Run a workflow until it waits."""
    result = await build(agent, storage).run("Go on.")
    (request,) = result.get_request_info_events()
    ids = await storage.list_checkpoint_ids(workflow_name="desk")
    return request.request_id, ids


async def resume(agent: Call, storage: Any, request: str) -> Any:
    """Resume from the latest checkpoint in a new workflow, and delete one."""
    latest = await storage.get_latest(workflow_name="desk")
    workflow = build(agent, storage)
    result = await workflow.run(checkpoint_id=latest.checkpoint_id, responses={request: "Good."})
    found = await storage.list_checkpoints(workflow_name="desk")
    deleted = [await storage.delete(latest.checkpoint_id) for _ in range(2)]
    return result.get_outputs(), [it.checkpoint_id for it in found], deleted


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_replay_saves_no_checkpoint(agent: Call, twice: Call, tmp_path: Path, kind: str) -> None:
    """It sees those that the recorded run saw, whether the storage is in memory or on disk."""
    folder = tmp_path / "checkpoints"
    memory = InMemoryCheckpointStorage()

    def storage() -> Any:
        return FileCheckpointStorage(folder) if kind == "file" else memory

    stored: list[Any] = []

    async def run() -> Any:
        request, ids = await begin(agent, storage())
        resumed = await resume(agent, storage(), request)
        stored.append(files(folder) if kind == "file" else dict(memory._checkpoints))
        return request, ids, resumed

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
    assert recorded[2][2] == [True, False]
    assert len(recorded[1]) >= 2
    assert stored[0] == stored[1]
    assert len(stored[0]) >= 2


def test_a_run_that_resumes_from_an_older_checkpoint_replays(
    agent: Call, twice: Call, tape: Path, tmp_path: Path
) -> None:
    """The tape holds the ids of older checkpoints, and no pickle; a replay changes no file."""
    storage = FileCheckpointStorage(tmp_path / "checkpoints")
    request, _ = asyncio.run(begin(agent, storage))
    before: list[dict[str, int]] = []

    async def run() -> Any:
        latest = await storage.get_latest(workflow_name="desk")
        workflow = build(agent, storage)
        result = await workflow.run(
            checkpoint_id=latest.checkpoint_id, responses={request: "Good."}
        )
        before.append(files(storage.storage_path))
        return result.get_outputs(), latest.checkpoint_id

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
    assert before[0] == before[1] == files(storage.storage_path)
    assert b"__pickled__" not in tape.read_bytes()

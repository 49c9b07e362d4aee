"""What docs/limits.toml says of tools, files and memories of AutoGen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock
from autogen_core.memory import (
    ListMemory,
    Memory,
    MemoryContent,
    MemoryMimeType,
    MemoryQueryResult,
    UpdateContextResult,
)
from autogen_core.models import SystemMessage
from autogen_core.tools import (
    FunctionTool,
    TextResultContent,
    ToolResult,
    ToolSchema,
    Workbench,
)
from autogen_ext.code_executors.local import LocalCommandLineCodeExecutor

import tracefork_core as tracefork
from tracefork_autogen import leave_live
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]
CALL = "@call add {}\n@then\n@say Done."


@pytest.mark.parametrize("is_left_live", [False, True])
def test_what_a_tool_changes_stays_as_it_was_in_a_replay(
    agent: Call, tape: Path, server: ProviderServer, is_left_live: bool
) -> None:
    """The next prompt shows it, unless the tool is left live."""

    async def run() -> None:
        basket: list[str] = []

        def add() -> str:
            basket.append("tea")
            return "added"

        tool = FunctionTool(leave_live(add) if is_left_live else add, "Adds.")
        await agent("helper", CALL, tools=[tool]).run(task="Go on.")
        await agent("clerk").run(task=f"We have {basket}.")

    with tracefork.record(tape):
        asyncio.run(run())
    if is_left_live:
        with tracefork.replay(tape, strict=True):
            asyncio.run(run())
    else:
        with pytest.raises(tracefork.DivergenceError), tracefork.replay(tape):
            asyncio.run(run())


class Shop(Workbench):
    """A workbench that notes when it starts and works."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes

    async def list_tools(self) -> list[ToolSchema]:
        empty: Any = {"type": "object", "properties": {}, "required": []}
        return [{"name": "add", "description": "Adds.", "parameters": empty}]

    async def call_tool(self, name: str, *_: Any, **__: Any) -> ToolResult:
        self.notes.append(name)
        return ToolResult(name=name, result=[TextResultContent(content="added")])

    async def start(self) -> None:
        self.notes.append("start")

    async def stop(self) -> None: ...

    async def reset(self) -> None: ...

    async def save_state(self) -> Mapping[str, Any]:
        return {}

    async def load_state(self, state: Mapping[str, Any]) -> None: ...


def test_a_workbench_of_ones_own_starts_in_a_replay(agent: Call, tape: Path) -> None:
    """Only its calls are answered from the tape."""
    notes: list[str] = []

    async def run() -> None:
        async with Shop(notes) as shop:
            await agent("helper", CALL, tools=None, workbench=shop).run(task="Go on.")

    for session in (tracefork.record, tracefork.replay):
        with session(tape):
            asyncio.run(run())
    assert notes == ["start", "add", "start"]


@pytest.mark.filterwarnings("ignore:Using LocalCommandLineCodeExecutor:UserWarning")
def test_files_of_code_are_not_written_again(tape: Path, tmp_path: Path) -> None:
    """The result names a file that is not there."""
    work = tmp_path / "work"
    work.mkdir()

    async def run() -> Any:
        executor = LocalCommandLineCodeExecutor(work_dir=work, cleanup_temp_files=False)
        blocks = [CodeBlock("echo hi", "sh")]
        return await executor.execute_code_blocks(blocks, CancellationToken())

    with tracefork.record(tape):
        recorded = asyncio.run(run())
    Path(recorded.code_file).unlink()
    with tracefork.replay(tape):
        assert asyncio.run(run()) == recorded
    assert not Path(recorded.code_file).exists()


def test_a_list_of_memories_that_outlives_a_run_differs(agent: Call, tape: Path) -> None:
    """The replay finds there what the recording added."""
    memory = ListMemory()

    async def run() -> None:
        await memory.add(MemoryContent(content="It rains.", mime_type=MemoryMimeType.TEXT))
        await agent("helper", memory=[memory]).run(task="Go on.")

    with tracefork.record(tape):
        asyncio.run(run())
    with pytest.raises(tracefork.DivergenceError), tracefork.replay(tape):
        asyncio.run(run())


class Board(Memory):
    """A memory that reads its own field where others ask by `query`."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    async def query(self, query: Any, cancellation_token: Any = None, **_: Any) -> Any: ...

    async def update_context(self, model_context: Any) -> UpdateContextResult:
        await model_context.add_message(SystemMessage(content=f"Notes: {self.notes}"))
        return UpdateContextResult(memories=MemoryQueryResult(results=[]))

    async def add(self, content: MemoryContent, cancellation_token: Any = None) -> None:
        self.notes.append(str(content.content))

    async def clear(self) -> None: ...

    async def close(self) -> None: ...


def test_a_memory_that_reads_its_own_fields_differs(agent: Call, tape: Path) -> None:
    """A replay adds nothing to them: a memory may be a database."""

    async def run() -> None:
        memory = Board()
        await memory.add(MemoryContent(content="It rains.", mime_type=MemoryMimeType.TEXT))
        await agent("helper", memory=[memory]).run(task="Go on.")

    with tracefork.record(tape):
        asyncio.run(run())
    with pytest.raises(tracefork.DivergenceError, match="It rains"), tracefork.replay(tape):
        asyncio.run(run())

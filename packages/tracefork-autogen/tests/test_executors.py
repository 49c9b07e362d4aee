"""Code that executors run is an exchange of effect write: a replay never runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import ApprovalRequest, ApprovalResponse, CodeExecutorAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult
from autogen_ext.code_executors.local import LocalCommandLineCodeExecutor
from autogen_ext.tools.code_execution import PythonCodeExecutionTool

import tracefork_core as tracefork

Call = Callable[..., Any]
pytestmark = pytest.mark.filterwarnings("ignore:Using LocalCommandLineCodeExecutor:UserWarning")


def block(code: str) -> TextMessage:
    """Return a message that holds code."""
    return TextMessage(content=f"```python\n{code}\n```", source="user")


def approve(request: ApprovalRequest) -> ApprovalResponse:
    return ApprovalResponse(approved=True, reason="fine")


async def execute(executor: CodeExecutor, code: str) -> str:
    """Let an agent run the code that it is told."""
    async with executor:
        agent = CodeExecutorAgent("terminal", executor, approval_func=approve)
        done = await agent.on_messages([block(code)], CancellationToken())
        return str(done.chat_message.to_text())


def test_code_on_this_machine_runs_once(tmp_path: Path, twice: Call, paths: Call) -> None:
    """Its output is the recorded one, and a replay writes no file."""
    notes, work = tmp_path / "notes.txt", tmp_path / "work"
    work.mkdir()
    code = f"open({str(notes)!r}, 'a').write('ran ')\nprint(id(object()))"

    def run() -> str:
        return asyncio.run(execute(LocalCommandLineCodeExecutor(work_dir=work), code))

    recorded, again = twice(run)
    assert recorded == again
    assert notes.read_text() == "ran "
    assert paths() == ["agent:terminal ▸ tool:execute_code_blocks"]


def test_a_tool_that_runs_code_is_one_exchange(
    agent: Call, tmp_path: Path, twice: Call, paths: Call
) -> None:
    """What its executor does is part of its call."""

    def run() -> str:
        tool = PythonCodeExecutionTool(LocalCommandLineCodeExecutor(work_dir=tmp_path))
        words = '@call CodeExecutor {"code": "print(id(object()))"}\n@then\n@say Done.'
        done = asyncio.run(agent("helper", words, tools=[tool]).run(task="Go on."))
        return str([message.to_text() for message in done.messages])

    recorded, again = twice(run)
    assert recorded == again
    assert [path for path in paths() if "tool" in path] == ["agent:helper ▸ tool:CodeExecutor"]


@dataclass
class KernelResult(CodeResult):
    files: list[Path] = field(default_factory=list)


class Kernel(CodeExecutor):
    """An executor that must be started, as one in a container must."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self.is_started = False

    async def execute_code_blocks(
        self, code_blocks: list[CodeBlock], cancellation_token: CancellationToken
    ) -> KernelResult:
        assert self.is_started
        self.notes.append(code_blocks[0].code.strip())
        return KernelResult(0, f"run {len(self.notes)}", [Path("a.png")])

    async def start(self) -> None:
        self.notes.append("start")
        self.is_started = True

    async def stop(self) -> None:
        self.notes.append("stop")

    async def restart(self) -> None:
        self.notes.append("restart")


async def converse(notes: list[str]) -> list[CodeResult]:
    async with Kernel(notes) as kernel:
        token, code = CancellationToken(), [CodeBlock("a()", "python")]
        results = [await kernel.execute_code_blocks(code, token)]
        await kernel.restart()
        return [*results, await kernel.execute_code_blocks(code, token)]


def test_a_replay_starts_no_executor(tape: Path) -> None:
    """The results are of the recorded class; nothing is started, restarted or stopped."""
    notes: list[str] = []
    with tracefork.record(tape):
        recorded = asyncio.run(converse(notes))
    assert notes == ["start", "a()", "restart", "a()", "stop"]
    notes.clear()
    with tracefork.replay(tape, strict=True):
        again = asyncio.run(converse(notes))
    assert notes == []
    assert recorded == again
    assert isinstance(again[0], KernelResult)


def test_a_fork_starts_an_executor_for_its_first_live_call(tape: Path) -> None:
    """A fork runs code only if writes are allowed."""
    notes: list[str] = []
    with tracefork.record(tape):
        asyncio.run(converse(notes))
    notes.clear()
    with pytest.raises(tracefork.TraceforkError), tracefork.fork(tape, 1):
        asyncio.run(converse(notes))
    assert notes == []
    with tracefork.fork(tape, 1, writes="allow"):
        asyncio.run(converse(notes))
    assert notes == ["start", "a()", "stop"]


def test_the_approval_of_code_is_asked_for_again(tape: Path) -> None:
    """It is a function of the program, which may ask a model: what it asks is on the tape."""
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> ApprovalResponse:
        asked.append(request.code)
        return ApprovalResponse(approved=False, reason="no")

    def run() -> None:
        agent = CodeExecutorAgent("terminal", Kernel([]), approval_func=approve)
        asyncio.run(agent.on_messages([block("a()")], CancellationToken()))

    with tracefork.record(tape):
        run()
    with tracefork.replay(tape):
        run()
    assert len(asked) == 2

"""Forks: Claude Code resumes a branch of the recorded session at a prompt."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import PermissionResultAllow, ResultMessage

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

Options = Callable[..., Any]
Talk = Callable[..., list[Any]]
BASH = '@call Bash {"command": "echo ran >> ran.txt"}\n@then\n@say done'
PROMPTS = (BASH, "@say second", "@say third")


@pytest.fixture
def run(options: Options, talk: Talk) -> Callable[[], list[str]]:
    """Ask the three prompts, and return the first word of each result."""

    def asked() -> list[str]:
        messages = talk(options(allowed_tools=["Bash"]), *PROMPTS)
        results = [one.result or "" for one in messages if isinstance(one, ResultMessage)]
        return [result.split()[0] for result in results]

    return asked


@pytest.fixture
def prompts(tape: Path, run: Callable[[], list[str]]) -> list[int]:
    """Record the run, and return the numbers of its prompts."""
    with tracefork.record(tape):
        run()
    with tracefork.Tape.open(tape) as opened:
        return [exchange.n for exchange in opened.exchanges if exchange.method == "prompt"]


def test_a_fork_at_a_prompt_resumes_the_session(
    tape: Path, run: Any, prompts: Any, server: ProviderServer, home: Path
) -> None:
    """The model is asked with the conversation before it, and no earlier tool runs again."""
    before = len(server.requests)
    with tracefork.fork(tape, prompts[1], writes="allow") as forked:
        assert run() == ["done", "second", "third"]
    assert forked.live == 2
    asked = [one for one in server.requests[before:] if one.path.startswith("/v1/messages")]
    assert len(asked) == 2
    assert b"echo ran" in asked[0].body
    assert (home / "ran.txt").read_text() == "ran\n"


def test_a_branch_replays_without_claude_code(
    tape: Path, run: Any, prompts: Any, server: ProviderServer, tmp_path: Path
) -> None:
    """A branch is a tape like any other."""
    branch = tmp_path / "branch.tape"
    with tracefork.fork(tape, prompts[1], writes="allow", to=branch):
        run()
    server.stop()
    with tracefork.replay(branch, strict=True) as replayed:
        assert run() == ["done", "second", "third"]
    assert replayed.digest == replayed.tape.digest


def test_a_fork_refuses_a_prompt_unless_it_may_write(
    tape: Path, run: Any, prompts: Any, server: ProviderServer
) -> None:
    """Claude Code runs tools, so a prompt may have side effects."""
    before = len(server.requests)
    with pytest.raises(tracefork.WriteError, match="--allow-writes"):
        with tracefork.fork(tape, prompts[0]):
            run()
    assert len(server.requests) == before


@pytest.mark.parametrize(
    "change", [{"prompt": "@say changed"}, {"values": {"/message/content": "@say changed"}}]
)
def test_a_fork_can_change_a_prompt(
    tape: Path, run: Any, prompts: Any, server: ProviderServer, change: Any
) -> None:
    """The model gets the changed one."""
    edit = tracefork.Edit(**change)
    with tracefork.fork(tape, prompts[2], replace=edit, writes="allow"):
        assert run() == ["done", "second", "changed"]
    assert b"@say changed" in server.requests[-1].body


@pytest.mark.parametrize(
    "change", [tracefork.Edit(model="claude-haiku-4-5"), tracefork.Fail(status=500)]
)
def test_a_fork_refuses_a_change_that_claude_code_cannot_make(
    tape: Path, run: Any, prompts: Any, change: Any
) -> None:
    """The error says what a fork can change."""
    with pytest.raises(tracefork.UsageError, match=r"--prompt TEXT|--text"):
        with tracefork.fork(tape, prompts[1], replace=change, writes="allow"):
            run()


def test_a_fork_can_give_another_answer(
    tape: Path, run: Any, prompts: Any, server: ProviderServer
) -> None:
    """Claude Code does not start."""
    before = len(server.requests)
    with tracefork.fork(tape, prompts[2], replace="another one"):
        assert run() == ["done", "second", "another"]
    assert len(server.requests) == before


@pytest.mark.parametrize("body", [b"not JSON", b"[1]\n", b"[" * 5000])
def test_an_answer_that_claude_code_cannot_give_is_one_error(
    tape: Path, run: Any, prompts: Any, body: bytes
) -> None:
    """A changed tape has the same error."""
    with pytest.raises(tracefork.ReplayError, match="no JSON object"):
        with tracefork.fork(tape, prompts[2], replace=tracefork.Replace(body=body)):
            run()


def test_a_fork_does_not_continue_from_an_answer_that_it_gave(
    tape: Path, run: Any, prompts: Any
) -> None:
    """Claude Code does not have that answer in its session."""
    with pytest.raises(tracefork.UsageError, match="cannot continue from an answer"):
        with tracefork.fork(tape, prompts[1], replace="another one", writes="allow"):
            run()


def test_a_fork_within_a_turn_is_refused(tape: Path, options: Options, talk: Talk) -> None:
    """Claude Code cannot continue from the middle of a turn, and nothing is asked."""
    asked: list[str] = []

    async def may(name: str, *_: Any) -> Any:
        asked.append(name)
        return PermissionResultAllow()

    with tracefork.record(tape):
        talk(options(can_use_tool=may), BASH)
    with tracefork.Tape.open(tape) as opened:
        (at,) = (one.n for one in opened.exchanges if one.method == "permission")
    with pytest.raises(tracefork.UsageError, match="Fork at a prompt"):
        with tracefork.fork(tape, at, writes="allow"):
            talk(options(can_use_tool=may), BASH)
    assert asked == ["Bash"]


def test_a_fork_needs_the_session_on_disk(tape: Path, run: Any, prompts: Any, home: Path) -> None:
    """Claude Code ends at once, because it does not have the conversation."""
    shutil.rmtree(home / "projects")
    with pytest.raises(tracefork.UsageError, match="cannot resume the recorded session"):
        with tracefork.fork(tape, prompts[1], writes="allow"):
            run()


def test_show_reads_a_prompt_as_a_call_of_a_model(tape: Path, prompts: Any) -> None:
    """With the tools that Claude Code ran, and the tokens of the turn."""
    shown = subprocess.run(
        [sys.executable, "-m", "tracefork_core.cli.main", "show", str(tape), str(prompts[0])],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "claude-sonnet-4-5" in shown
    assert "echo ran" in shown
    assert "finished     end_turn" in shown

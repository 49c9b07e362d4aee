"""What is on the tape, and what is not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

from .conftest import KEY

Options = Callable[..., Any]
Talk = Callable[..., list[Any]]


def test_no_secret_of_an_environment_is_on_the_tape(
    tape: Path, options: Options, talk: Talk
) -> None:
    """Neither those of Claude Code nor those of its MCP servers, if a tool prints them too."""
    secret = "hunter2-of-the-server-0123456789"
    servers = {"files": {"command": "/bin/false", "env": {"FILES_API_KEY": secret}}}
    show = '@call Bash {"command": "echo $ANTHROPIC_API_KEY"}\n@then\n@say done'
    with tracefork.record(tape):
        messages = talk(options(mcp_servers=servers, allowed_tools=["Bash"]), show)
    assert KEY in repr(messages)
    with tracefork.Tape.open(tape) as opened:
        bodies = b"".join(one.request_body + one.response_body for one in opened.exchanges)
    assert b'"--mcp-config": {"files": {"command": "/bin/false"' in bodies
    for text in (KEY, secret):
        assert text.encode() not in bodies
        assert text.encode() not in tape.read_bytes()


def test_a_program_that_claude_code_starts_is_no_part_of_the_run(
    twice: Any, tape: Path, options: Options, talk: Talk, server: ProviderServer, home: Path
) -> None:
    """It would not start in a replay, so its calls must not be on the tape."""
    script = home / "call.py"
    call = f"httpx2.get('{server.url}/v1/models').status_code"
    script.write_text(f"import httpx2\nprint('status', {call})\n")
    prompt = f'@call Bash {{"command": "{sys.executable} {script}"}}\n@then\n@say done'
    recorded, again = twice(lambda: talk(options(allowed_tools=["Bash"]), prompt))
    assert again == recorded
    assert "status 404" in repr(again)
    with tracefork.Tape.open(tape) as opened:
        assert {one.method for one in opened.exchanges} == {"initialize", "prompt"}

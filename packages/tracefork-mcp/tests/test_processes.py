"""Programs on the command line: another process replays, and secrets stay off the tape."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tracefork_core as tracefork

SECRET = "sk-proj-4f9Xq2LmT7vRb8NcWz3KdYhP"
TOKEN = "hunter2-of-the-server"
AGENT = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

TOKEN = {"API_TOKEN": "hunter2-of-the-server"}
SERVER = StdioServerParameters(command=sys.executable, args=sys.argv[1:3], env=TOKEN)

async def main():
    async with stdio_client(SERVER) as streams, ClientSession(*streams) as session:
        await session.initialize()
        print(len((await session.list_tools()).tools))
        print((await session.call_tool("token", {})).content[0].text[:12])
        print((await session.call_tool("guest", {})).content[0].text)
        for i in range(3):
            print((await session.call_tool("now", {})).content[0].text)
        echo = {"names": list({"ada", "bob", "cyd"}), "key": "sk-proj-4f9Xq2LmT7vRb8NcWz3KdYhP"}
        echo["names"].sort()
        print((await session.call_tool("echo", echo)).content[0].text.count("ada"))

asyncio.run(main())
"""
NO_START = """
import sys
def hook(event, args):
    if event in ("subprocess.Popen", "os.posix_spawn", "socket.connect", "socket.getaddrinfo"):
        sys.stderr.write(f"{event} {args!r}\\n")
        raise RuntimeError(f"no {event}")
sys.addaudithook(hook)
"""


pytestmark = pytest.mark.many_processes


@pytest.fixture
def run(tmp_path: Path, program: Path, counter: Path) -> Callable[..., str]:
    """Run a command of tracefork on the agent, in a new process with its own hash seed."""
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)

    def run(verb: str, *options: str, seed: str, before: str = "") -> str:
        code = f"{before}\nfrom tracefork_core.cli.main import main\nmain()"
        words = [*options, str(agent), str(program), str(counter)]
        done = subprocess.run(
            [sys.executable, "-c", code, verb, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "TRACEFORK_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_another_process_replays_without_server_file_or_network(
    run: Callable[..., str], program: Path, tmp_path: Path, counted: Callable[[], list[str]]
) -> None:
    """With another hash seed, the server's file deleted, and every start and connection refused."""
    recorded = run("record", "-o", "run.tape", seed="1")
    assert counted().count("start") == 1
    program.unlink()
    assert run("replay", "run.tape", seed="2", before=NO_START) == recorded
    assert counted().count("start") == 1


def test_a_python_server_does_not_join_the_session(run: Callable[..., str], tape: Path) -> None:
    """It is part of its exchanges: it has no lane, and gets no invitation."""
    printed = run("record", "-o", str(tape), seed="1")
    with tracefork.Tape.open(tape) as opened:
        lanes = {exchange.lane for exchange in opened.exchanges}
    assert lanes == {"main"}
    assert "invited: False" in printed


def test_no_secret_lands_on_the_tape(run: Callable[..., str], tape: Path, counter: Path) -> None:
    """Neither a variable that the server repeats nor a key in an argument; other texts do."""
    run("record", "-o", str(tape), seed="1")
    with tracefork.Tape.open(tape) as opened:
        held = [exchange.request_body + exchange.response_body for exchange in opened.exchanges]
    texts = b"".join([*held, tape.read_bytes()])
    assert SECRET.encode() not in texts
    assert TOKEN.encode() not in texts
    assert b'"ada"' in texts
    assert b"tracefork-secret-API_TOKEN" in texts, "the server repeats its token"

"""Tools of MCP servers: a replay starts no process and connects to nothing."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_testkit import closed_network

SERVER = Path(__file__).with_name("mcp_server.py")


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """The file in which the server notes that it was started."""
    return tmp_path / "started"


@pytest.fixture
def config(started: Path) -> Any:
    """How CrewAI starts the server."""
    from crewai.mcp import MCPServerStdio

    return MCPServerStdio(command=sys.executable, args=["-I", str(SERVER), str(started)])


def test_a_replay_starts_no_server(
    way: str, calling: Any, twice: Any, config: Any, started: Path, exchanges: Any, prompts: Any
) -> None:
    """The list of its tools is on the tape, and so are their results; one of them fails."""
    from crewai.mcp.tool_resolver import MCPToolResolver
    from crewai.utilities.string_utils import sanitize_tool_name

    name = MCPToolResolver._create_transport(config)[1]
    tools = [sanitize_tool_name(f"{name}_{tool}") for tool in ("double", "break")]
    calls = "\n".join(f'@call {tool} {{"a": 21}}' for tool in tools)
    run = calling(way, calls, list, agents_={"mcps": [config]})
    recorded, replayed = twice(run)
    assert replayed.raw == recorded.raw
    assert len(started.read_text().splitlines()) == 3
    assert "twice 21 is 42" in prompts()
    discovery = ["mcp.connect", "mcp.list_tools", "mcp.disconnect"]
    assert [name for name, _ in exchanges()] == [*discovery, *tools]


async def use(config: Any) -> list[Any]:
    """Use a server as a program does that calls it directly."""
    from crewai.mcp import MCPClient
    from crewai.mcp.transports.stdio import StdioTransport

    transport = StdioTransport(command=config.command, args=config.args)
    async with MCPClient(transport) as client:
        tools = await client.list_tools(use_cache=True)
        again = await client.list_tools(use_cache=True)
        results = [await client.call_tool(name, {"a": 2}) for name in ("double", "break")]
        whole = await client.call_tool_result("break", {"a": 2})
    return [tools, again, results, whole, whole.is_error]


async def test_a_program_that_uses_a_server_replays(tape: Path, config: Any, started: Path) -> None:
    """The connection, the list of tools and the results all come from the tape."""
    live = await use(config)
    with tracefork.record(tape):
        assert await use(config) == live
    started.unlink()
    with tracefork.replay(tape):
        replayed = await use(config)
    assert replayed == live
    assert type(replayed[3]) is type(live[3])
    assert not started.exists()


async def test_another_argument_diverges(tape: Path, config: Any) -> None:
    """The control: arguments for a server are compared."""
    from crewai.mcp import MCPClient
    from crewai.mcp.transports.stdio import StdioTransport

    async def ask(a: int) -> Any:
        transport = StdioTransport(command=config.command, args=config.args)
        async with MCPClient(transport) as client:
            return await client.call_tool("double", {"a": a})

    with tracefork.record(tape):
        await ask(1)
    with pytest.raises(tracefork.DivergenceError, match="/arguments/a"), tracefork.replay(tape):
        await ask(2)


async def test_a_failed_connection_fails_the_same_in_a_replay(tape: Path, config: Any) -> None:
    """The failure is on the tape: the replay raises the same error and does not try to connect."""
    gone = config.model_copy(update={"command": "/no/such/program"})
    errors = []
    for session in (tracefork.record, tracefork.replay):
        with session(tape), pytest.raises(Exception, match="connect") as caught:
            await use(gone)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]
    assert issubclass(errors[0][0], ConnectionError)


@pytest.fixture
def address() -> Iterator[str]:
    """The URL of a server that is given by its URL alone."""
    spec = importlib.util.spec_from_file_location("mcp_server", SERVER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            answer = module.answer(json.loads(self.rfile.read(length)))
            body = json.dumps(answer).encode() if answer else b""
            self.send_response(200 if answer else 202)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp?key=secret"
        server.shutdown()


@pytest.mark.filterwarnings("ignore:Use `streamable_http_client`:DeprecationWarning")
def test_a_server_given_by_its_url_replays(tape: Path, address: str, exchanges: Any) -> None:
    """Its tools are listed once, and the schemas of their arguments become classes again."""
    from crewai.mcp.tool_resolver import MCPToolResolver
    from crewai.utilities.logger import Logger

    def run() -> list[Any]:
        resolver = MCPToolResolver(agent=None, logger=Logger())
        return list(resolver._resolve_external(address))

    with tracefork.record(tape):
        recorded = run()
        said = recorded[0].run(a=21)
    with closed_network() as network, tracefork.replay(tape):
        replayed = run()
        assert replayed[0].run(a=21) == said == "twice 21 is 42"
    assert network.attempts == []
    schemas = [[tool.args_schema.model_json_schema() for tool in it] for it in (recorded, replayed)]
    assert schemas[0] == schemas[1]
    name = recorded[0].name.replace(":", "_")
    assert [name for name, _ in exchanges()] == ["mcp.list_tools", name]
    assert "secret" not in json.dumps(exchanges())

"""Connections that fail, end or are never made, and messages that nothing asked for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

import tracefork_core as tracefork
from tracefork_testkit import closed_network

from .conftest import texts

Counted = Callable[[], list[str]]


async def failing(server: Any, tool: str, arguments: dict[str, Any] | None = None) -> list[Any]:
    """Call a tool whose server ends, and another one after that."""
    errors: list[Any] = []
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        await session.list_tools()  # Else a client lists them after its first call.
        for name in (tool, "now"):
            try:
                errors.append(texts(await session.call_tool(name, arguments or {})))
            except Exception as error:
                errors.append((type(error).__name__, str(error)))
            await asyncio.sleep(0.2)
    return errors


@pytest.mark.parametrize("tool", ["crash", "leave"])
async def test_a_server_that_crashes_crashes_in_a_replay(
    tape: Path, plain: Any, counted: Counted, tool: str
) -> None:
    """In the middle of a call, and between two calls: the client gets the same errors."""
    with tracefork.record(tape):
        recorded = await failing(plain, tool)
    assert recorded[1] == ("ClosedResourceError", "") or recorded[1][0].lower() == "mcperror"
    before = counted()
    with tracefork.replay(tape) as replayed:
        assert await failing(plain, tool) == recorded
    assert replayed.digest == replayed.tape.digest
    assert counted() == before


async def test_a_server_that_does_not_start_fails_the_same_in_a_replay(
    tape: Path, plain: Any, program: Path
) -> None:
    """The failure is on the tape. The replay does not try, even if the program is there now."""
    plain.command = str(program.with_name("missing"))
    errors = []
    for session in (tracefork.record, tracefork.replay):
        with session(tape), pytest.raises(FileNotFoundError) as caught:
            await failing(plain, "now")
        errors.append(str(caught.value))
        Path(plain.command).write_text("#!/bin/sh\nexec true\n")
        Path(plain.command).chmod(0o755)
    assert errors[0] == errors[1]


async def listening(server: Any) -> list[str]:
    """Wait for messages that the server sends by itself, then call a tool."""
    heard: list[str] = []
    arrived = asyncio.Event()

    async def log(params: Any) -> None:
        heard.append(params.data)
        if len(heard) == 3:
            arrived.set()

    async with (
        stdio_client(server) as streams,
        ClientSession(*streams, logging_callback=log) as session,
    ):
        await session.initialize()
        await session.call_tool("later", {"count": 3})
        await arrived.wait()
        return [*heard, *texts(await session.call_tool("now", {}))]


async def test_messages_that_nothing_asked_for_replay(
    tape: Path, plain: Any, exchanges: Callable[[], list[tuple[str, str]]]
) -> None:
    """They come when no request is open, and the program waits for them."""
    with tracefork.record(tape):
        recorded = await listening(plain)
    assert ("receive", "mcp:plain") in exchanges()
    with closed_network(), tracefork.replay(tape, strict=True) as replayed:
        assert await listening(plain) == recorded
    assert replayed.digest == replayed.tape.digest


async def subscribed(counter: Path) -> list[str]:
    """Subscribe to changes of a server, which the server confirms, and call a tool."""
    from mcp.client import Client

    shop = Path(__file__).parent / "servers" / "shop.py"
    command = StdioServerParameters(command=sys.executable, args=[str(shop), str(counter)])
    async with (
        Client(stdio_client(command)) as client,
        client.listen(tools_list_changed=True),
    ):
        return texts(await client.call_tool("price", {"item": "hat"}))


async def test_a_subscription_replays_in_the_same_process(tape: Path, counter: Path) -> None:
    """A client numbers its subscriptions from its first one on, and waits for its number."""
    if int(version("mcp").split(".")[0]) < 2:
        pytest.skip("version 1 of mcp has no such subscriptions")
    with tracefork.record(tape):
        recorded = await subscribed(counter)
    with closed_network(), tracefork.replay(tape, strict=True) as replayed:
        assert await asyncio.wait_for(subscribed(counter), 10) == recorded
    assert replayed.digest == replayed.tape.digest


async def several(servers: list[Any]) -> list[list[str]]:
    """Use several servers at once."""

    async def use(server: Any) -> list[str]:
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            calls = [session.call_tool("now", {}) for _ in range(3)]
            return [text for one in await asyncio.gather(*calls) for text in texts(one)]

    return await asyncio.gather(*map(use, servers))


async def test_identical_calls_of_several_servers_get_their_own_answers(
    tape: Path, plain: Any
) -> None:
    """Three servers of one name, each asked the same three times at once."""
    with tracefork.record(tape):
        recorded = await several([plain] * 3)
    assert len({text for texts in recorded for text in texts}) == 9
    with tracefork.replay(tape, strict=True):
        assert await several([plain] * 3) == recorded


async def hasty(server: Any, seconds: float) -> str:
    """Give up waiting for a tool."""
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        call = session.call_tool("delay", {"seconds": 0.5, "tag": "slow"})
        try:
            return "".join(texts(await asyncio.wait_for(call, seconds)))
        except TimeoutError:
            return "".join(texts(await session.call_tool("echo", {"gave": "up"})))


async def test_a_client_that_gives_up_gives_up_in_a_replay(tape: Path, plain: Any) -> None:
    """Its timeout comes in the recorded turn, though a replay could answer at once."""
    with tracefork.record(tape):
        recorded = await hasty(plain, 0.1)
    assert "up" in recorded
    with tracefork.replay(tape) as replayed:
        assert await hasty(plain, 0.1) == recorded
    assert replayed.digest == replayed.tape.digest


async def test_a_connection_that_outlives_its_session_goes_on(tape: Path, plain: Any) -> None:
    """Its messages outside of the session are not recorded, and the client notices nothing."""
    async with stdio_client(plain) as streams, ClientSession(*streams) as outer:
        await outer.initialize()
        recording = tracefork.record(tape)
        recording.__enter__()
        connection = stdio_client(plain)
        inner = await connection.__aenter__()
        async with ClientSession(*inner) as session:
            await session.initialize()
            recording.__exit__(None, None, None)
            assert texts(await session.call_tool("echo", {"a": 1})) == ['{"a": 1}']
        await connection.__aexit__(None, None, None)
        assert texts(await outer.call_tool("echo", {"a": 2})) == ['{"a": 2}']

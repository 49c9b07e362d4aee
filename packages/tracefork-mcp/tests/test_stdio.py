"""Servers that talk over standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, types
from mcp.client.stdio import stdio_client

import tracefork_core as tracefork
from tracefork_testkit import closed_network

from .conftest import is_error, texts


async def outcome(call: Any) -> Any:
    """Return the texts of a result, or the error."""
    try:
        result = await call
    except Exception as error:
        return type(error).__name__, str(error), getattr(error, "error", None)
    return texts(result), is_error(result)


async def sample(context: Any, params: Any) -> Any:
    content = types.TextContent(type="text", text="four")
    return types.CreateMessageResult(role="assistant", content=content, model="m")


async def work(server: Any, **changes: Any) -> dict[str, Any]:
    """Use every kind of message."""
    got: dict[str, Any] = {"progress": [], "logs": [], "order": []}

    async def log(params: Any) -> None:
        got["logs"].append(params.data)

    async def progress(done: float, total: float | None, message: str | None) -> None:
        got["progress"].append((done, total))

    async with (
        stdio_client(server) as streams,
        ClientSession(*streams, sampling_callback=sample, logging_callback=log) as session,
    ):
        got["server"] = str(await session.initialize())
        got["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        got["now"] = [await outcome(session.call_tool("now", {})) for _ in range(2)]

        async def delayed(tag: str, seconds: float) -> Any:
            arguments = {"seconds": seconds, "tag": tag}
            result = await outcome(session.call_tool("delay", arguments))
            got["order"].append(tag)
            return result

        got["parallel"] = await asyncio.gather(delayed("a", 0.2), delayed("b", 0.01))
        for tool in ("fail", "refuse", "ask"):
            got[tool] = await outcome(session.call_tool(tool, {}))
        got["echo"] = await outcome(session.call_tool("echo", {"a": 1, "b": "two", **changes}))
        call = session.call_tool("report", {}, progress_callback=progress)
        got["report"] = await outcome(call)
    return got


async def test_a_run_replays_with_the_server_gone(
    tape: Path, plain: Any, program: Path, counted: Callable[[], list[str]]
) -> None:
    """Results, errors, progress, logs, sampling and the order of parallel calls are the same."""
    with tracefork.record(tape):
        recorded = await work(plain)
    assert recorded["order"] == ["b", "a"]
    assert recorded["progress"] == [(0, 3), (1, 3), (2, 3)]
    assert len(recorded["logs"]) == 1
    before = counted()
    assert before.count("start") == 1
    program.unlink()
    with closed_network() as network, tracefork.replay(tape, strict=True) as replayed:
        assert await work(plain) == recorded
    assert replayed.digest == replayed.tape.digest
    assert network.attempts == []
    assert counted() == before


async def test_two_live_runs_differ(plain: Any) -> None:
    """The negative control of replay: this server never gives the same answer twice."""
    assert await work(plain) != await work(plain)


async def test_another_argument_diverges(tape: Path, plain: Any) -> None:
    """The error names the server, the tool and the argument, and nothing hangs."""
    with tracefork.record(tape):
        await work(plain)
    with pytest.raises(tracefork.DivergenceError) as caught, tracefork.replay(tape):
        await work(plain, b="three")
    message = str(caught.value)
    assert "mcp:plain/echo" in message
    assert "/arguments/b" in message


async def reports(server: Any, totals: list[int]) -> dict[int, list[Any]]:
    """Let the server report the progress of several calls at once."""
    heard: dict[int, list[Any]] = {}

    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()

        async def report(total: int) -> None:
            async def note(done: float, of: float | None, message: str | None) -> None:
                heard.setdefault(total, []).append((done, of))

            arguments = {"total": total}
            await session.call_tool("report", arguments, progress_callback=note)

        await asyncio.gather(*map(report, totals))
    return heard


async def test_ids_and_progress_tokens_are_those_of_the_client(tape: Path, plain: Any) -> None:
    """A client that sends its calls in another order gives them other ids and tokens."""
    with tracefork.record(tape):
        recorded = await reports(plain, [5, 7])
    assert recorded == {5: [(0, 5), (1, 5), (2, 5)], 7: [(0, 7), (1, 7), (2, 7)]}
    with tracefork.replay(tape):
        assert await reports(plain, [7, 5]) == recorded


async def test_a_trace_context_is_not_compared(tape: Path, plain: Any) -> None:
    """Version 2 sends one with each request while a tracer is active; other data is compared."""

    async def use(**meta: str) -> list[str]:
        async with stdio_client(plain) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return texts(await session.call_tool("now", {}, meta=meta))

    with tracefork.record(tape):
        recorded = await use(traceparent="00-1-1-01", tenant="a")
    with tracefork.replay(tape):
        assert await use(traceparent="00-2-2-01", tenant="a") == recorded
    with pytest.raises(tracefork.DivergenceError, match="/_meta/tenant"), tracefork.replay(tape):
        await use(traceparent="00-2-2-01", tenant="b")

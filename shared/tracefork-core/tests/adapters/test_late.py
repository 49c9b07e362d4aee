"""A connection is made when the first live call needs it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import tracefork_core as tracefork
from tracefork_core.adapters import Late, atool_exchange


class Server:
    """A client of a server, as a framework has one, with what an adapter does to it."""

    late = Late()

    def __init__(self) -> None:
        self.connected: list[str] = []

    async def connect(self) -> None:
        if not self.late.put_off(self, self._connect):
            await self._connect()

    async def _connect(self) -> None:
        self.connected.append("on")

    async def ask(self, n: int) -> object:
        return await atool_exchange("ask", {"n": n}, partial(self._ask), effect="read")

    async def _ask(self, n: int) -> str:
        await self.late.made(self)
        assert self.connected == ["on"], "the server is asked without a connection"
        return f"answer {n}"

    async def close(self) -> None:
        waits = self.late.waits(self)
        assert self.late.forget(self) is waits
        if not waits:
            self.connected.append("off")


async def agent() -> Server:
    """Ask twice, in one connection."""
    server = Server()
    await server.connect()
    await server.ask(1)
    await server.ask(2)
    await server.close()
    return server


async def test_a_replay_connects_to_nothing(tape: Path) -> None:
    """A recording connects at once. What was never connected is not closed either."""
    with tracefork.record(tape):
        assert (await agent()).connected == ["on", "off"]
    with tracefork.replay(tape):
        assert (await agent()).connected == []


async def test_a_fork_connects_at_its_first_live_call(tape: Path, tmp_path: Path) -> None:
    """Once: the second call uses the same connection. It is closed at the end."""
    with tracefork.record(tape):
        await agent()
    for at in (0, 1):
        with tracefork.fork(tape, at=at, to=tmp_path / f"{at}.tape"):
            assert (await agent()).connected == ["on", "off"]
    with tracefork.fork(tape, at=1, replace="else", to=tmp_path / "given.tape"):
        assert (await agent()).connected == []

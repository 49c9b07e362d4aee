"""`attach` records a transport of the user's own, and sessions that are not ambient."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from claude_agent_sdk import ResultMessage, Transport, query
from claude_agent_sdk._internal.query import Query
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

import tracefork_core as tracefork
from tracefork_claude_agent_sdk import attach, detach
from tracefork_claude_agent_sdk.instrument import METHODS
from tracefork_core.adapters import crossing_seam

Options = Callable[..., Any]


class Elsewhere(Transport):
    """A transport to a Claude Code that another part of the program has started."""

    def __init__(self, options: Any) -> None:
        self.inner = SubprocessCLITransport(prompt="", options=options)
        self.connected = 0

    async def connect(self) -> None:
        """Connect."""
        self.connected += 1
        with crossing_seam():
            await self.inner.connect()

    async def write(self, data: str) -> None:
        """Send."""
        await self.inner.write(data)

    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Receive."""
        return self.inner.read_messages()

    async def close(self) -> None:
        """Leave."""
        await self.inner.close()

    def is_ready(self) -> bool:
        """Return whether it is connected."""
        return self.inner.is_ready()

    async def end_input(self) -> None:
        """Say that nothing more comes."""
        await self.inner.end_input()


def ask(transport: Transport | None, options: Any = None) -> list[Any]:
    """Ask over a transport."""

    async def asked() -> list[Any]:
        return [one async for one in query(prompt="@say hi", options=options, transport=transport)]

    return asyncio.run(asked())


@pytest.mark.parametrize("ambient", [True, False])
def test_a_transport_of_your_own_is_recorded_if_it_is_attached(
    twice: Any, options: Options, tape: Any, ambient: bool
) -> None:
    """A replay does not connect it."""
    made: list[Elsewhere] = []

    def run() -> list[Any]:
        made.append(attach(Elsewhere(options())))
        messages = ask(made[-1])
        detach(made[-1])
        return messages

    recorded, again = twice(run, ambient=ambient)
    assert again == recorded
    assert [transport.connected for transport in made] == [1, 0]


def test_a_transport_that_is_not_attached_is_live(options: Options, tape: Any) -> None:
    """The control of the test above: nothing of it is on the tape."""
    with tracefork.record(tape):
        ask(Elsewhere(options()))
    transport = Elsewhere(options())
    with tracefork.replay(tape):
        ask(transport)
    assert transport.connected == 1


def test_attaching_twice_and_detaching_leaves_a_transport_as_it_was(options: Options) -> None:
    """`attach` returns what it gets, and so does `detach`."""
    transport = Elsewhere(options())
    before = dict(vars(transport))
    assert attach(attach(transport)) is transport
    assert vars(transport) != before
    assert detach(transport) is transport
    assert vars(transport) == before
    assert detach(transport) is transport


def test_outside_a_session_an_attached_transport_works(options: Options) -> None:
    """And the class of the SDK is as it was."""
    before = [getattr(SubprocessCLITransport, name) for name in METHODS]
    transport = attach(Elsewhere(options()))
    messages = ask(transport)
    assert isinstance(messages[-1], ResultMessage)
    detach(transport)
    assert [getattr(SubprocessCLITransport, name) for name in METHODS] == before


def test_a_session_leaves_the_sdk_as_it_was(options: Options, tape: Any) -> None:
    """Methods are replaced only while a session is open."""
    before = [getattr(SubprocessCLITransport, name) for name in METHODS]
    with tracefork.record(tape):
        assert [getattr(SubprocessCLITransport, name) for name in METHODS] != before
    assert [getattr(SubprocessCLITransport, name) for name in METHODS] == before


def test_something_else_is_refused(options: Options) -> None:
    """The error says that options need no `attach`."""
    with pytest.raises(tracefork.UsageError, match="Options and clients need no attach"):
        attach(options())


@pytest.mark.parametrize(
    ("owner", "name"),
    [(Query, "_handle_control_request"), (SubprocessCLITransport, "write")],
)
def test_an_unsupported_version_is_named_in_one_error(
    monkeypatch: pytest.MonkeyPatch, tape: Any, owner: Any, name: str
) -> None:
    """The error has the version and the supported ones, and the SDK is left unchanged."""
    before = SubprocessCLITransport.connect
    monkeypatch.delattr(owner, name)
    monkeypatch.delattr(Transport, name, raising=False)
    with pytest.raises(tracefork.UsageError, match=r"claude-agent-sdk 0\..* is made for"):
        with tracefork.record(tape):
            pass
    assert SubprocessCLITransport.connect is before

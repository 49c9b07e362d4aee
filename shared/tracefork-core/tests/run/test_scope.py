"""The block of a session: how it begins and ends, and what is on its tape then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import DivergenceError, Tape, UsageError, record, replay
from tracefork_testkit import ProviderServer


def outcome(tape: Path) -> str:
    with Tape.open(tape) as recorded:
        assert recorded.complete
        assert recorded.receipt is not None
        return recorded.receipt.outcome


def test_a_block_records_and_replays(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The value of `with` has the path at once, and the digest when the block has ended."""
    with record(tape) as run:
        first = http.get(f"{provider.url}/bytes/9").content
        assert (run.path, run.receipt, run.digest) == (tape, None, None)
    with replay(str(tape)) as replaying:
        assert http.get(f"{provider.url}/bytes/9").content == first
    assert replaying.digest == run.digest is not None
    assert (replaying.exchanges, replaying.sockets, replaying.subprocesses) == (1, 0, [])
    assert outcome(tape) == "ok"


async def test_an_async_block_records_and_replays(tape: Path, provider: ProviderServer) -> None:
    """`async with` is the same block."""
    async with httpx2.AsyncClient(verify=False) as client:
        async with record(tape):
            first = (await client.get(f"{provider.url}/bytes/9")).content
        async with replay(tape) as replaying:
            assert (await client.get(f"{provider.url}/bytes/9")).content == first
    assert replaying.exchanges == 1


def test_a_decorated_function_is_a_run(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """It keeps its arguments, result, name and docstring; each call is a session of its own."""

    def agent(n: int, *, path: str = "bytes") -> bytes:
        """Ask."""
        return http.get(f"{provider.url}/{path}/{n}").content

    assert record(tape)(agent)(3) == b"\0\1\2"
    replayed = replay(tape)(agent)
    assert [replayed(3, path="bytes"), replayed(3)] == [b"\0\1\2"] * 2
    assert (replayed.__name__, replayed.__doc__) == ("agent", "Ask.")
    with pytest.raises(DivergenceError):
        replayed(4)


def test_a_decorated_coroutine_function_is_a_run(tape: Path, provider: ProviderServer) -> None:
    """It stays a coroutine function, and the session lasts until its coroutine ends."""

    async def agent(n: int) -> bytes:
        async with httpx2.AsyncClient(verify=False) as client:
            await asyncio.sleep(0)
            return (await client.get(f"{provider.url}/bytes/{n}")).content

    recorded, replayed = record(tape)(agent), replay(tape)(agent)
    assert asyncio.iscoroutinefunction(recorded)
    assert asyncio.run(recorded(2)) == asyncio.run(replayed(2)) == b"\0\1"


def test_generator_functions_are_refused(tape: Path) -> None:
    """Their body runs after the call has returned, when no session is open."""

    def sync_generator() -> Iterator[int]:
        yield 1

    async def async_generator() -> AsyncIterator[int]:
        yield 1

    for function in (sync_generator, async_generator):
        with pytest.raises(UsageError, match=f"{function.__name__} is a generator: .* Put the"):
            record(tape)(function)
    assert not tape.exists()


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_in_the_block_passes_through_and_completes_the_tape(
    tape: Path, provider: ProviderServer, http: httpx2.Client, error: BaseException
) -> None:
    """It is the same object. Its class is the outcome of the run, and a replay ends alike."""

    def agent() -> None:
        http.get(f"{provider.url}/bytes/1")
        raise error

    for scope in (record(tape), replay(tape)):
        with pytest.raises(type(error)) as raised, scope:
            agent()
        assert raised.value is error
        assert not hasattr(error, "__notes__")
    assert outcome(tape) == type(error).__name__


def test_an_interrupt_passes_through_a_replay_with_a_note(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Ctrl-C stops the program even if the replay has diverged before."""
    with record(tape):
        http.get(f"{provider.url}/bytes/1")

    def agent() -> None:
        with pytest.raises(DivergenceError):
            http.get(f"{provider.url}/bytes/2")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised, replay(tape):
        agent()
    assert "after 0 of 1 exchange" in raised.value.__notes__[0]


def test_an_agent_that_stops_early_keeps_its_error(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Its own error is raised, with a note about the calls that it did not make."""
    with record(tape):
        http.get(f"{provider.url}/bytes/1")
    with pytest.raises(ZeroDivisionError) as raised, replay(tape):
        raise ZeroDivisionError
    assert "after 0 of 1 exchange" in raised.value.__notes__[0]


def test_a_block_cannot_be_entered_twice_at_once(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The second entry raises a UsageError and does not disturb the run."""
    scope = record(tape)
    with scope as run:
        with pytest.raises(UsageError, match="open already"):
            scope.__enter__()
        http.get(f"{provider.url}/bytes/1")
    assert run.receipt is not None
    assert run.receipt.exchanges == 1


def test_a_scope_can_be_used_again_after_it_ended(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """One replay scope, three sequential sessions, each from the beginning of the tape."""
    with record(tape):
        first = http.get(f"{provider.url}/bytes/5").content
    scope: Any = replay(tape)
    for _ in range(3):
        with scope as run:
            assert http.get(f"{provider.url}/bytes/5").content == first
        assert run.exchanges == 1

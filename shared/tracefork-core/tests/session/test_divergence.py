"""A divergence fails the run: at once, at later calls, and at the end, even if it is swallowed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tracefork_core import DivergenceError, record, replay
from tracefork_testkit import ProviderServer


class Asks:
    """Requests numbered things from the provider."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = httpx2.Client(verify=False)

    def __call__(self, *numbers: int) -> None:
        for number in numbers:
            self._client.post(f"{self._url}/echo", json={"n": number})

    async def later(self, *numbers: int) -> None:
        async with httpx2.AsyncClient(verify=False) as client:
            for number in numbers:
                await client.post(f"{self._url}/echo", json={"n": number})

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def ask(provider: ProviderServer) -> Iterator[Asks]:
    """Request numbered things."""
    asks = Asks(provider.url)
    yield asks
    asks.close()


@pytest.fixture
def recorded(tape: Path, ask: Asks) -> Path:
    """Record the exchanges 1, 2 and 3."""
    with record(tape):
        ask(1, 2, 3)
    return tape


def diverges(run: Callable[[], object], kind: str) -> DivergenceError:
    with pytest.raises(DivergenceError) as raised:
        run()
    assert raised.value.divergence.kind == kind
    return raised.value


def test_the_recorded_requests_replay(recorded: Path, ask: Asks, provider: ProviderServer) -> None:
    """The control: three answers, and the provider receives nothing."""
    heard = len(provider.requests)
    with replay(recorded) as run:
        ask(1, 2, 3)
    assert (run.exchanges, run.digest) == (3, run.tape.digest)
    assert len(provider.requests) == heard


def test_an_extra_call_diverges(recorded: Path, ask: Asks, provider: ProviderServer) -> None:
    """A request beyond the recorded ones is not sent."""
    heard = len(provider.requests)

    def run() -> None:
        with replay(recorded):
            ask(1, 2, 3, 3)

    error = diverges(run, "extra")
    assert error.divergence.n is None
    assert "after 3 of 3 exchanges" in str(error)
    assert len(provider.requests) == heard


def test_a_missing_call_diverges(recorded: Path, ask: Asks) -> None:
    """The block raises when it ends, since only then the call is known to be missing."""

    def run() -> None:
        with replay(recorded):
            ask(1, 2)

    error = diverges(run, "leftover")
    assert error.divergence.n == 2
    assert "#2" in str(error)


def test_many_missing_calls_are_listed_up_to_eight(tape: Path, ask: Asks) -> None:
    """More than eight are shortened."""
    with record(tape):
        ask(*range(10))
    for asked, named in ((1, "#1, #2, #3, #4, #5, #6, #7, #8, … "), (2, "#7, #8, #9 ")):
        with pytest.raises(DivergenceError) as raised, replay(tape):
            ask(*range(asked))
        assert named in str(raised.value)


def test_a_swapped_order_within_a_lane_diverges(recorded: Path, ask: Asks) -> None:
    """The same requests in another order are another run."""

    def run() -> None:
        with replay(recorded):
            ask(1, 3, 2)

    error = diverges(run, "order")
    assert error.divergence.n == 1
    assert error.divergence.candidates[0].n == 2


def test_a_swallowed_divergence_is_raised_by_every_later_exchange(
    recorded: Path, ask: Asks
) -> None:
    """After the first divergence no call is answered, and the block fails too."""
    errors: list[DivergenceError] = []

    def run() -> None:
        with replay(recorded):
            for number in (9, 1, 2, 3):
                try:
                    ask(number)
                except DivergenceError as error:
                    errors.append(error)

    last = diverges(run, "request")
    assert [error.divergence for error in errors] == [last.divergence] * 4
    assert len({id(error) for error in [*errors]}) == 4


def test_a_swallowed_divergence_is_raised_by_leaving_an_async_block(
    recorded: Path, ask: Asks
) -> None:
    """`async with` raises it like `with`."""

    async def agent() -> None:
        async with replay(recorded):
            with suppress(DivergenceError):
                await ask.later(9)

    diverges(lambda: asyncio.run(agent()), "request")


def test_sys_exit_does_not_hide_a_divergence(recorded: Path, ask: Asks) -> None:
    """An agent that swallows the error and exits with 0 has not replayed."""

    def run() -> None:
        with replay(recorded):
            with suppress(DivergenceError):
                ask(9)
            sys.exit(0)

    assert isinstance(diverges(run, "request").__cause__, SystemExit)


def test_sys_exit_does_not_hide_a_missing_call(recorded: Path, ask: Asks) -> None:
    """An agent that exits early has left its tape."""

    def run() -> None:
        with replay(recorded):
            ask(1)
            sys.exit(0)

    diverges(run, "leftover")


def test_a_divergence_is_raised_over_the_error_of_a_framework(recorded: Path, ask: Asks) -> None:
    """The framework's own error is its context, and is not printed above it."""

    def run() -> None:
        with replay(recorded):
            try:
                ask(9)
            except DivergenceError as error:
                raise ValueError("tool failed") from error

    error = diverges(run, "request")
    assert isinstance(error.__context__, ValueError)
    assert error.__suppress_context__


def test_a_bug_of_the_agent_is_raised_with_missing_calls_as_a_note(
    recorded: Path, ask: Asks
) -> None:
    """The bug is the news; calls that never came are its consequence."""

    def run() -> None:
        with replay(recorded):
            ask(1)
            raise ValueError("bug")

    with pytest.raises(ValueError, match="bug") as raised:
        run()
    assert "#1, #2" in raised.value.__notes__[0]


def test_a_divergence_in_a_task_group_is_raised(recorded: Path, ask: Asks) -> None:
    """An exception group does not hide it, and `except*` catches it."""
    seen: list[BaseException] = []

    async def agent() -> None:
        async with replay(recorded):
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(ask.later(1))
                    group.create_task(ask.later(9))
            except* DivergenceError as caught:
                seen.extend(caught.exceptions)

    diverges(lambda: asyncio.run(agent()), "request")
    assert seen

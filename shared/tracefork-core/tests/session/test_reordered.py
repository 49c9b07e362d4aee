"""A replay with `order` delivers overlapping answers in that order, and the rest as recorded."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tracefork_core import Tape, record, replay
from tracefork_core.order.pace import Pace
from tracefork_core.order.policies import Reordered
from tracefork_core.order.quiet import Gate
from tracefork_core.order.thread_rest import Rest
from tracefork_core.order.turnstile import Turnstile
from tracefork_testkit import ProviderServer

WORDS = ("one", "two", "three")
Program = Callable[[str], list[str]]


def tasks(url: str) -> list[str]:
    """Make three calls in tasks, and return the order in which their streams ended."""
    done: list[str] = []

    async def ask(client: httpx2.AsyncClient, word: str) -> None:
        async with client.stream("POST", f"{url}/echo", content=word.encode()) as answer:
            await answer.aread()
        done.append(word)

    async def run() -> None:
        async with httpx2.AsyncClient(verify=False) as client:
            await asyncio.gather(*(ask(client, word) for word in WORDS))

    asyncio.run(run())
    return done


def threads(url: str) -> list[str]:
    """Do the same in threads."""
    done: list[str] = []

    def ask(word: str) -> None:
        with httpx2.Client(verify=False) as client:
            client.post(f"{url}/echo", content=word.encode())
        done.append(word)

    with ThreadPoolExecutor(len(WORDS)) as pool:
        list(pool.map(ask, WORDS))
    return done


def sleeper(url: str) -> list[str]:
    """Sleep during one call, and return which of the two ended first."""
    done: list[str] = []

    async def ask() -> None:
        async with httpx2.AsyncClient(verify=False) as client:
            await client.post(f"{url}/echo", content=b"one")
        done.append("one")

    async def sleep() -> None:
        await asyncio.sleep(0.01)
        done.append("slept")

    async def run() -> None:
        await asyncio.gather(ask(), sleep())

    asyncio.run(run())
    return done


class LateRest(Rest):
    """A `Rest` that returns at once for the main thread, and after 0.2 seconds for others."""

    alone = False
    others_wait = threading.Event()

    def wait(self, limit: float | None = None) -> None:
        """Let others of the run run meanwhile."""
        if threading.current_thread() is not threading.main_thread():
            self.others_wait.set()
            time.sleep(0.2)


def numbers(tape: Path) -> dict[str, int]:
    """Return the number of the exchange for each word."""
    with Tape.open(tape) as opened:
        return {exchange.request_body.decode(): exchange.n for exchange in opened.exchanges}


@pytest.mark.parametrize("program", [tasks, threads])
def test_exchanges_end_in_the_given_order(
    tape: Path, provider: ProviderServer, program: Program
) -> None:
    """For every permutation, and `completed` reports it."""
    with record(tape):
        program(provider.url)
    number = numbers(tape)
    for words in (WORDS, WORDS[::-1], ("two", "one", "three")):
        order = [number[word] for word in words]
        with replay(tape, order=order) as run:
            assert program(provider.url) == list(words)
        assert run.completed == order


def test_exchanges_outside_the_order_end_as_recorded(tape: Path, provider: ProviderServer) -> None:
    """The named exchanges swap places among themselves, and nothing stays waiting."""
    with record(tape):
        first = tasks(provider.url)
    number = numbers(tape)
    with replay(tape, order=[number[first[2]], number[first[0]]]) as run:
        assert tasks(provider.url) == [first[2], first[1], first[0]]
    assert run.digest == run.tape.digest


def test_a_woken_thread_that_checks_again_keeps_its_turn() -> None:
    """Each delivery wakes the first thread that waits; until it waits again, others may choose."""
    policy = Reordered([(turn, turn) for turn in range(3)], [0, 1, 2])
    order = Turnstile(policy, Gate(LateRest(set())), Pace(None))
    looks_anew = threading.Thread(target=order.wait, args=(1, 1, 0))
    looks_anew.start()
    LateRest.others_wait.wait()
    for turn in (0, 2):
        order.wait(turn, turn, 0)
    looks_anew.join()
    assert order.completed == [0, 1, 2]


@pytest.mark.parametrize(("program", "most"), [(tasks, 6), (sleeper, 2)])
def test_a_seed_gives_a_reproducible_order(
    tape: Path, provider: ProviderServer, program: Program, most: int
) -> None:
    """Other seeds give other orders, of exchanges and of sleeps."""
    with record(tape):
        program(provider.url)

    def seeded(seed: int) -> tuple[str, ...]:
        with replay(tape, order=seed):
            return tuple(program(provider.url))

    orders = [seeded(seed) for seed in range(8)]
    assert 1 < len(set(orders)) <= most
    assert [seeded(seed) for seed in range(3)] == orders[:3]


def test_without_order_the_recorded_order_is_kept(tape: Path, provider: ProviderServer) -> None:
    """The negative control; `completed` stays empty."""
    with record(tape):
        first = tasks(provider.url)
    with replay(tape) as run:
        assert tasks(provider.url) == first
    assert run.completed == []

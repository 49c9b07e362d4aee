"""A call of a decorated function is an exchange: it runs while recording, not at replay."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import (
    DivergenceError,
    Fail,
    Replace,
    Tape,
    UsageError,
    WriteError,
    fork,
    record,
    replay,
    tool,
)

from ..conftest import Alter

ran: list[object] = []
"""What the tools below did: at replay, nothing."""


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool(effect="read")
def search(query: str, *also: str, limit: int = 3, **more: object) -> list[str]:
    """Find pages."""
    ran.append(query)
    return [f"{query} {n}" for n in range(limit)]


@tool
async def lookup(key: str) -> str:
    ran.append(key)
    await asyncio.sleep(0)
    return key.upper()


class Shop:
    """Has tools of its own."""

    @tool(effect="write")
    def order(self, what: str) -> int:
        ran.append(what)
        return len(ran)

    @classmethod
    @tool(name="shop/open")
    def is_open(cls, day: str) -> bool:
        ran.append(day)
        return day != "sunday"

    @staticmethod
    @tool
    def price(what: str) -> float:
        ran.append(what)
        return 9.5


def both(path: Path, agent: Callable[[], Any]) -> tuple[Any, Tape]:
    """Record and replay an agent; check that both return the same, and return that."""
    with record(path):
        recorded = agent()
    done = len(ran)
    with replay(path) as run:
        assert agent() == recorded
    assert len(ran) == done, "a tool ran at replay"
    assert run.digest == run.tape.digest
    return recorded, Tape.open(path)


def test_a_call_is_an_exchange_with_its_arguments_and_its_result(tape: Path) -> None:
    """Name, arguments with defaults, effect and result are on the tape, as JSON."""
    said, opened = both(tape, lambda: search("cats", "dogs", limit=2, lang="en"))
    with opened:
        (exchange,) = opened.exchanges
        assert (exchange.method, exchange.url, exchange.aside.seam) == (
            "CALL",
            "tool:search",
            "tool",
        )
        assert exchange.aside.effect == "read"
        assert exchange.request_body == (
            b'{"also":["dogs"],"limit":2,"more":{"lang":"en"},"query":"cats"}'
        )
        assert exchange.response_body == b'["cats 0","cats 1"]'
    assert said == ["cats 0", "cats 1"]


def test_outside_a_session_a_tool_is_a_plain_function() -> None:
    """It runs, and has its name, docstring, signature and kind."""
    assert search("a", limit=1) == ["a 0"]
    assert asyncio.run(lookup("b")) == "B"
    assert ran == ["a", "b"]
    assert (search.__name__, search.__doc__) == ("search", "Find pages.")
    assert list(inspect.signature(search).parameters) == ["query", "also", "limit", "more"]
    assert inspect.iscoroutinefunction(lookup)
    assert not inspect.iscoroutinefunction(search)


def test_methods_are_recorded_without_their_object(tape: Path) -> None:
    """Methods, class methods and static methods replay, with other objects, too."""
    said, opened = both(
        tape, lambda: [Shop().order("tea"), Shop.is_open("monday"), Shop().price("tea")]
    )
    assert said == [1, True, 9.5]
    with opened:
        exchanges = opened.exchanges
        assert [exchange.url for exchange in exchanges] == [
            "tool:Shop.order",
            "tool:shop/open",
            "tool:Shop.price",
        ]
        assert [exchange.request_body for exchange in exchanges] == [
            b'{"what":"tea"}',
            b'{"day":"monday"}',
            b'{"what":"tea"}',
        ]
        assert [exchange.aside.effect for exchange in exchanges] == ["write", None, None]


def test_a_changed_argument_diverges_with_its_pointer(tape: Path) -> None:
    """The card points into the arguments, and the tool does not run."""
    with record(tape):
        search("cats", where={"lang": ["en", "de"]})
    with pytest.raises(DivergenceError) as caught, replay(tape):
        search("cats", where={"lang": ["en", "fr"]})
    divergence = caught.value.divergence
    assert (divergence.request, divergence.pointer) == ("CALL tool:search", "/more/where/lang/1")
    assert (divergence.recorded, divergence.actual) == ("de", "fr")
    assert divergence.where.startswith("after 0 of 1 exchange · test_tools.py:")
    assert len(ran) == 1


def raised_by(ask: Callable[[], object]) -> type[Exception] | None:
    """Return the class of a call's exception, as an agent that swallows everything."""
    try:
        ask()
    except Exception as error:
        return type(error)
    return None


def test_after_a_divergence_every_tool_raises_it_again(tape: Path) -> None:
    """Sync and async, though the agent swallowed the error; no tool runs."""
    with record(tape):
        search("cats")

    async def looks_up() -> str:
        return await lookup("a")

    asks: list[Callable[[], object]] = [
        lambda: search("dogs"),
        lambda: search("cats"),
        lambda: asyncio.run(looks_up()),
    ]
    with pytest.raises(DivergenceError), replay(tape):
        assert [raised_by(ask) for ask in asks] == [DivergenceError] * 3
    assert ran == ["cats"]


def test_concurrent_tools_end_in_the_recorded_order(tape: Path) -> None:
    """Tasks that ended last to first do so at replay."""
    events: list[asyncio.Event] = []

    @tool
    async def wait_for_next(n: int) -> int:
        ran.append(n)
        if n < 3:
            await events[n + 1].wait()
        events[n].set()
        return n

    async def agent() -> list[int]:
        events[:] = [asyncio.Event() for _ in range(4)]
        joined: list[int] = []

        async def branch(n: int) -> None:
            joined.append(await wait_for_next(n))

        await asyncio.gather(*(branch(n) for n in range(4)))
        return joined

    said, opened = both(tape, lambda: asyncio.run(agent()))
    opened.close()
    assert said == [3, 2, 1, 0]


def test_equal_calls_in_threads_get_their_own_results(tape: Path) -> None:
    """Four threads are told apart by the jobs that they run."""
    barrier = threading.Barrier(4)

    @tool
    def count() -> int:
        ran.append(threading.get_ident())
        barrier.wait(10)
        return len(ran)

    def numbered(n: int) -> tuple[int, int]:
        return n, count()

    def agent() -> list[tuple[int, int]]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(numbered, range(4)))

    said, opened = both(tape, agent)
    opened.close()
    assert [n for n, _ in said] == [0, 1, 2, 3]


def test_a_changed_byte_on_the_tape_changes_the_result(tape: Path, alter: Alter) -> None:
    """The result comes from the tape, and the digest shows the change."""
    with record(tape):
        before = search("cats", limit=1)
    with Tape.open(tape) as opened:
        digest = opened.receipt and opened.receipt.digest
        sha = opened.exchanges[0].payload.response
    assert sha is not None
    changed = b'["cuts 0"]'
    new = sha256(changed).hexdigest().encode()
    alter(
        tape,
        events=lambda line: line.replace(sha.body.encode(), new),
        bodies=lambda data: data.replace(b'["cats 0"]', changed),
    )
    with replay(tape) as run:
        assert search("cats", limit=1) == ["cuts 0"] != before
    assert run.digest != digest
    assert len(ran) == 1


def test_a_fork_replaces_a_result_and_repeats_no_write(tape: Path) -> None:
    """A write stops the fork unless `writes="allow"`."""

    def agent() -> object:
        (found,) = search("cats", limit=1)
        return Shop().order(found)

    with record(tape):
        agent()
    done = list(ran)
    with pytest.raises(WriteError), fork(tape, at=0, change={0: Replace(document=["dogs"])}):
        agent()
    assert ran == done
    with fork(tape, at=0, change={0: Replace(document=["dogs"])}, writes="allow"):
        agent()
    assert ran == [*done, "dogs"]
    with fork(tape, at=1, change={1: Fail(kind="LookupError")}):
        assert raised_by(agent) is LookupError


def test_secrets_in_arguments_and_results_are_masked(
    tape: Path, monkeypatch: pytest.MonkeyPatch, written: Callable[[Path], bytes]
) -> None:
    """The agent sees its key while recording; the tape and the replay hold a placeholder."""
    monkeypatch.setenv("SHOP_API_KEY", secret := "k-4711-0815-2342")
    with record(tape):
        assert search(secret, limit=1) == [f"{secret} 0"]
    monkeypatch.setenv("SHOP_API_KEY", other := "another-key-of-another")
    with replay(tape):
        assert search(other, limit=1) == ["tracefork-secret-SHOP_API_KEY 0"]
    assert secret.encode() not in written(tape)
    assert len(ran) == 1


def test_a_matcher_ignores_an_argument(tape: Path) -> None:
    """By its JSON pointer."""
    with record(tape):
        search("cats", limit=2)
    with replay(tape, match=["ignore:/query"]):
        assert search("dogs", limit=2) == ["cats 0", "cats 1"]
    with pytest.raises(DivergenceError), replay(tape, match=["ignore:/query"]):
        search("dogs", limit=3)


def test_a_tape_without_bodies_records_tools_too(tape: Path) -> None:
    """In mode `metadata` the tape keeps hashes, and the agent gets its results."""
    with record(tape, mode="metadata"):
        assert search("cats", limit=1) == ["cats 0"]
    with Tape.open(tape) as opened:
        (exchange,) = opened.exchanges
        assert (exchange.url, exchange.has_bodies) == ("tool:search", False)


def test_wrong_arguments_raise_pythons_own_error(tape: Path) -> None:
    """Arguments that a model made up are no exchange."""
    with pytest.raises(TypeError) as plain:
        search()  # type: ignore[call-arg]
    with record(tape) as run:
        with pytest.raises(TypeError) as caught:
            search()  # type: ignore[call-arg]
    assert str(caught.value) == str(plain.value)
    assert run.receipt is not None
    assert run.receipt.exchanges == 0


def test_an_argument_without_json_is_refused_before_the_tool_runs(tape: Path) -> None:
    """The error names the tool, the pointer of the argument and its class."""
    with record(tape) as run:
        with pytest.raises(UsageError) as caught:
            search("cats", where=[1, threading.Lock()])
    for fact in ("search", "/more/where/1", "_thread.lock"):
        assert fact in str(caught.value)
    assert ran == []
    assert run.receipt is not None
    assert run.receipt.exchanges == 0


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"effect": "none"}, "read, write, pure .*'none'"),
        ({"name": "what?"}, r"'what\?'"),
        ({"name": ""}, "''"),
        ({"raises": (KeyboardInterrupt,)}, "KeyboardInterrupt"),
    ],
)
def test_invalid_options_are_refused_when_a_tool_is_defined(
    options: dict[str, Any], fact: str
) -> None:
    """Effect, name and exceptions."""
    with pytest.raises(UsageError):
        tool(**options)(len)


def test_tool_above_staticmethod_is_refused() -> None:
    """The error says in which order to put the decorators."""
    with pytest.raises(UsageError, match="below @staticmethod"):
        tool(staticmethod(len))

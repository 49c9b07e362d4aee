"""Each step of a generator belongs to the session that the generator was started under."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tracefork_core import record
from tracefork_testkit import ProviderServer

from .asking import Worker, aask, ask, asked_on


def test_steps_of_a_generator_belong_to_its_session(tape: Path, provider: ProviderServer) -> None:
    """Starlette resumes each step in a fresh context and in any thread."""

    def stream() -> Iterator[str]:
        with record(tape):
            for text in ("one", "two", "three"):
                yield ask(provider.url, text)

    with ThreadPoolExecutor(3) as executor:
        steps = stream()
        said = [
            executor.submit(contextvars.Context().run, lambda: next(steps, "over")).result()
            for _ in range(4)
        ]
    assert said == ["one", "two", "three", "over"]
    assert asked_on(tape) == ["one", "two", "three"]


def test_code_that_iterates_over_a_generator_is_not_recorded(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """Two generators with a session each, and a request between their steps."""

    def stream(name: str) -> Iterator[str]:
        with record(tmp_path / f"{name}.tape"):
            yield ask(provider.url, f"{name} 1")
            yield ask(provider.url, f"{name} 2")

    said = [(*pair, ask(provider.url, "between")) for pair in zip(stream("a"), stream("b"))]  # noqa: B905
    assert said == [("a 1", "b 1", "between"), ("a 2", "b 2", "between")]
    assert asked_on(tmp_path / "a.tape") == ["a 1", "a 2"]
    assert asked_on(tmp_path / "b.tape") == ["b 1", "b 2"]


def test_async_generators_keep_their_sessions_apart(
    tmp_path: Path, provider: ProviderServer
) -> None:
    """Their steps and their code run in one task, with a session each."""

    async def stream(name: str) -> AsyncIterator[str]:
        async with record(tmp_path / f"{name}.tape"):
            yield await aask(provider.url, f"{name} 1")
            both = await asyncio.gather(*(aask(provider.url, f"{name} {n}") for n in (2, 3)))
            yield " ".join(both)

    async def consume() -> list[str]:
        first, second = stream("a"), stream("b")
        said = [await anext(first), await anext(second), await aask(provider.url, "between")]
        said += [text async for text in first]
        return said + [text async for text in second]

    assert asyncio.run(consume()) == ["a 1", "b 1", "between", "a 2 a 3", "b 2 b 3"]
    for name in "ab":
        asked = asked_on(tmp_path / f"{name}.tape")
        assert sorted(asked) == [f"{name} {n}" for n in (1, 2, 3)]


def test_a_generator_started_in_the_block_is_recorded_elsewhere(
    tape: Path, provider: ProviderServer, worker: Worker
) -> None:
    """An older thread resumes it. A generator that it starts itself is its own."""

    def steps() -> Iterator[str]:
        for text in ("one", "two"):
            yield ask(provider.url, text)

    with record(tape):
        started = steps()
        next(started)
        assert worker.run(lambda: next(started)) == "two"
        assert worker.run(lambda: next(steps())) == "one"
    assert asked_on(tape) == ["one", "two"]

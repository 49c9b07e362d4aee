"""A replay that leaves its tape ends at once with a clear error, which CrewAI does not hide."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from crewai.memory.unified_memory import Memory

import tracefork_core as tracefork
from tracefork_crewai import misses
from tracefork_testkit import ProviderServer

from . import modes
from .modes import contrary
from .tools.test_memory import Drawer

MODES = {
    way: modes.MODES[way]
    for way in (
        "sequential",
        "async_execution",
        "hierarchical",
        "flow",
        "for_each",
        "akickoff",
        "streaming",
        "guardrails",
        "react",
        "planning",
    )
}


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    """A provider that never repeats an answer."""
    with ProviderServer(contrary()) as server:
        yield server


@pytest.fixture
def refused(url: str) -> Iterator[list[str]]:
    """The refused requests, as httpx logs them, without those of earlier tests."""
    lines: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if " 424 " in record.getMessage() and url in record.getMessage():
                lines.append(record.getMessage())

    logger, listener = logging.getLogger("httpx"), Listener()
    logger.setLevel(logging.INFO)
    logger.addHandler(listener)
    yield lines
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(listener)


@pytest.fixture
def diverge(
    llm: Callable[..., Any], tape: Path, server: ProviderServer
) -> Callable[..., tuple[BaseException | None, tracefork.DivergenceError]]:
    """Record an action, and replay it with LLMs that send another temperature.

    `only` is the number of the one LLM that does so; None means all. Return the exception of the
    action (None if it had none) and the one of the `with` block.
    """

    def run(
        action: Callable[[Callable[..., Any]], object], only: int | None = None
    ) -> tuple[BaseException | None, tracefork.DivergenceError]:
        numbers = itertools.count()
        before = set(threading.enumerate())

        def warmer(*args: Any, **options: Any) -> Any:
            if only in (None, next(numbers)):
                options["temperature"] = 0.5
            return llm(*args, **options)

        with tracefork.record(tape):
            action(llm)
        server.stop()
        met: list[BaseException] = []
        with pytest.raises(tracefork.DivergenceError) as raised, tracefork.replay(tape):
            _swallow(met, lambda: action(warmer))
        for thread in set(threading.enumerate()) - before:
            if thread.name.startswith("Thread-"):
                thread._started.wait()  # type: ignore[attr-defined]  # It may just be starting.
                thread.join()  # A thread of CrewAI would send requests in the next test.
        divergence = raised.value.divergence
        assert (divergence.pointer, divergence.actual) == ("/temperature", "0.5")
        return met[0] if met else None, raised.value

    return run


def _swallow(met: list[BaseException], action: Callable[[], object]) -> None:
    try:
        action()
    except BaseException as error:
        met.append(error)


@pytest.mark.parametrize("way", MODES)
def test_a_miss_ends_a_crew_however_it_is_run(diverge: Any, refused: list[str], way: str) -> None:
    """The caller gets the divergence itself, which names the steps; a branch sends one request."""
    met, raised = diverge(MODES[way].run)
    assert isinstance(met, tracefork.DivergenceError)
    assert str(met) == str(raised)
    assert raised.divergence.step in str(met)
    assert 1 <= len(refused) <= 3


HIDDEN = {
    "hierarchical": (1, "desk ▸ piece ▸ Crew Manager ▸ delegate_work_to_coworker ▸ Editor ▸ "),
    "guardrails": (0, "desk ▸ review ▸ "),
    "flow": (2, "Press ▸ "),
}


@pytest.mark.parametrize("way", HIDDEN)
def test_a_miss_in_one_branch_ends_all_branches(diverge: Any, way: str) -> None:
    """A manager whose co-worker failed stops, and so does a task whose judge failed."""
    only, step = HIDDEN[way]
    met, raised = diverge(MODES[way].run, only)
    assert isinstance(met, tracefork.DivergenceError)
    assert raised.divergence.step.startswith(step)
    assert raised.divergence.n > 0


def test_another_query_to_a_memory_ends_the_crew(
    crew: Any, llm: Any, tape: Path, refused: list[str]
) -> None:
    """CrewAI alone would continue without the memory that failed."""

    def run(prompt: str) -> None:
        memory = Memory(llm=llm(), embedder=lambda texts: [[1.0] for _ in texts], storage=Drawer())
        crew(research=prompt, options_={"memory": memory}).kickoff()

    with tracefork.record(tape):
        run("Find the facts.")
    met: list[BaseException] = []
    with pytest.raises(tracefork.DivergenceError, match="memory") as raised, tracefork.replay(tape):
        _swallow(met, lambda: run("Find rumours."))
    assert isinstance(met[0], tracefork.DivergenceError)
    assert raised.value.divergence.n == 0
    assert len(refused) == 1


def test_a_divergence_that_a_crew_swallows_is_raised_at_the_end(
    diverge: Any, refused: list[str]
) -> None:
    """The last call fails and the crew succeeds, but leaving the block raises the divergence.

    The recorded answer of the first task does not answer the request that was sent instead.
    """
    outputs: list[str] = []

    def run(llm: Callable[..., Any]) -> None:
        def aside(_: Any) -> None:
            with suppress(Exception):
                outputs.append(llm().call("Write."))

        made = modes.pair(llm)
        made.tasks[1].callback = aside
        made.kickoff()

    met, _ = diverge(run, 1)
    assert met is None
    assert len(refused) == 1
    assert len(outputs) == 1  # The one of the recording.


def test_without_the_adapter_a_crew_retries_and_hides_the_divergence(
    diverge: Any, refused: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: each agent sends three requests, and the caller gets an error of the SDK."""
    monkeypatch.setattr(misses, "put_in", lambda _: None)
    met, _ = diverge(MODES["sequential"].run)
    assert not isinstance(met, tracefork.TraceforkError)
    assert len(refused) == 3


def test_a_divergence_that_mentions_a_rate_limit_is_not_retried(
    llm: Any, tape: Path, refused: list[str]
) -> None:
    """CrewAI takes an error that mentions a rate limit for one, and would retry the call."""
    with tracefork.record(tape):
        llm().call("Say nothing of any rate limit.")
    with pytest.raises(tracefork.DivergenceError), tracefork.replay(tape):
        llm().call("Say something of any rate limit.")
    assert len(refused) == 1

"""`attach` lets sessions with `ambient=False` record a crew, and `detach` undoes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from crewai import LLM
from crewai.events.event_bus import CrewAIEventsBus
from crewai.flow import Flow, start

import tracefork_core as tracefork
from tracefork_core.adapters import found_adapters
from tracefork_crewai import ADAPTER, attach, detach
from tracefork_crewai.hermetic import SWITCHES
from tracefork_testkit import ProviderServer

PROMPTS = {"research": "Find the facts.", "write": "Write them up."}


@pytest.fixture
def attached() -> Iterator[Callable[[Any], Any]]:
    """Attach for the duration of the test."""
    seen: list[Any] = []

    def until_the_end(x: Any) -> Any:
        seen.append(x)
        return attach(x)

    yield until_the_end
    for x in seen:
        detach(x)


def flow_of(llm: Any) -> Any:
    class Press(Flow[dict[str, Any]]):
        _skip_auto_memory: ClassVar[bool] = True  # Else a vector database is loaded.

        def __init__(self) -> None:
            super().__init__()
            self.llm = llm

        @start()
        def begin(self) -> str:
            return str(self.llm.call("Hello."))

    return Press()


WAYS: dict[str, Callable[[Any], tuple[Any, Callable[[], Any]]]] = {
    "a crew": lambda made: (made, lambda: made.kickoff().raw),
    "an agent": lambda made: (made.agents[0], lambda: made.agents[0].kickoff("Hello.").raw),
    "an LLM": lambda made: (made.agents[0].llm, lambda: made.agents[0].llm.call("Hello.")),
    "a task": lambda made: (made.tasks[0], lambda: made.tasks[0].execute_sync().raw),
    "a flow": lambda made: (flow := flow_of(made.agents[0].llm), flow.kickoff),
}


@pytest.mark.parametrize("what", WAYS)
@pytest.mark.parametrize("inside", [False, True], ids=["before", "in the session"])
def test_an_attached_object_replays_without_ambient_patching(
    crew: Any, twice: Any, paths: Any, attached: Any, what: str, inside: bool
) -> None:
    """`attach` returns the same object, its LLM is bound, and its exchanges have steps."""

    def made() -> Callable[[], Any]:
        x, run = WAYS[what](crew(**PROMPTS))
        assert attached(x) is x
        return run

    ready = [] if inside else [made(), made()]

    def run() -> Any:
        ask = made() if inside else ready.pop()
        return ask()

    recorded, replayed = twice(run, ambient=False)
    assert recorded == replayed
    assert len(paths()) == (2 if what == "a crew" else 1)
    assert all(path[-1] == "gpt-4o-mini" for path in paths())


def test_a_detached_crew_is_not_on_a_tape_without_ambient_patching(
    crew: Any, tape: Path, server: ProviderServer
) -> None:
    """The control: only `attach` puts its exchanges and steps on the tape."""
    made = crew(**PROMPTS)
    assert detach(attach(attach(made))) is made
    with tracefork.record(tape, ambient=False):
        made.kickoff()
    assert len(server.requests) == 2
    with tracefork.Tape.open(tape) as opened:
        assert (opened.exchanges, opened.steps) == ([], [])


@pytest.mark.parametrize("model", ["azure/gpt-4o", "openai/gpt-4o-mini"])
def test_an_llm_that_is_not_bound_is_refused_by_name(
    crew: Any, attached: Any, tape: Path, model: str
) -> None:
    """One with an SDK that cannot be bound, and one that was not attached: neither is called."""
    attached(crew(**PROMPTS))
    url = "http://127.0.0.1:9"
    llm = LLM(model=model, api_key="none", base_url=url, endpoint=url)
    if "azure" in model:
        attached(llm)
    with (
        pytest.raises(tracefork.UsageError, match=r"Completion\('g.* is not bound.*ambient=False"),
        tracefork.record(tape, ambient=False),
    ):
        llm.call("Hello.")


def test_a_shared_llm_stays_bound_until_the_last_detach(llm: Any, crew: Any) -> None:
    """Two crews share the LLM, which gets its own clients back when both are detached."""
    shared = llm()
    before = shared._client
    one, other = attach(crew(llm_=shared, **PROMPTS)), attach(crew(llm_=shared, **PROMPTS))
    detach(one)
    assert shared._client is not before
    detach(other)
    assert shared._client is before


def test_attach_changes_nothing_outside_a_session(
    crew: Any, attached: Any, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CrewAI and the environment change in a session only."""
    name = next(iter(SWITCHES))
    monkeypatch.delenv(name)
    before = CrewAIEventsBus.emit
    attached(crew(**PROMPTS))
    assert (CrewAIEventsBus.emit, os.environ.get(name)) == (before, None)
    with tracefork.record(tape, ambient=False):
        assert CrewAIEventsBus.emit is not before
        assert os.environ[name] == SWITCHES[name]
    assert (CrewAIEventsBus.emit, os.environ.get(name)) == (before, None)


def test_attach_refuses_other_types_by_name() -> None:
    """A role's name, passed instead of its agent, would fail here."""
    with pytest.raises(tracefork.UsageError, match=r"cannot attach to builtins\.str"):
        attach("crew")


def test_the_adapter_is_found_by_its_entry_point() -> None:
    """`tracefork doctor` finds it among the installed adapters."""
    assert ADAPTER in [adapter for _, adapter in found_adapters()]

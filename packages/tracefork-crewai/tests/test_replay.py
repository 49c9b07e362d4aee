"""A recorded crew replays without its provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from crewai import LLM
from crewai.events.event_bus import CrewAIEventsBus
from crewai.memory.unified_memory import Memory
from crewai.utilities import agent_utils

import tracefork_core as tracefork
import tracefork_crewai
from tracefork_core import UsageError
from tracefork_testkit import ProviderServer, closed_network

PROMPTS = {"research": "Find the facts.", "write": "Write them up."}


def test_a_crew_replays_as_it_was_recorded(crew: Any, tape: Path, server: ProviderServer) -> None:
    """Two tasks come out the same with the network closed, and the digest is the tape's."""
    with tracefork_crewai.record(tape):
        recorded = crew(**PROMPTS).kickoff().raw
    asked = len(server.requests)
    server.stop()
    with closed_network() as network, tracefork_crewai.replay(tape) as run:
        assert crew(**PROMPTS).kickoff().raw == recorded
    assert network.attempts == []
    assert (run.exchanges, run.digest) == (asked, run.tape.digest)


def test_a_live_crew_answers_otherwise(crew: Any) -> None:
    """The control: this provider never answers twice alike."""
    assert crew(**PROMPTS).kickoff().raw != crew(**PROMPTS).kickoff().raw


COUNTS = hasattr(agent_utils, "_proactively_summarize_context")
MODELS = {"openai/gpt-4o-mini": "input_tokens", "anthropic/claude-sonnet-4-5": "count_tokens"}


@pytest.mark.parametrize("model", MODELS)
def test_what_the_real_hosts_are_asked_besides_is_on_the_tape(
    crew: Any, twice: Any, tape: Path, server: ProviderServer, model: str
) -> None:
    """They are asked to count tokens, by versions of CrewAI that do so; no other host is."""

    def run() -> Any:
        return crew(llm_=LLM(model=model, api_key="none"), **PROMPTS).kickoff().raw

    with server.real_hosts():
        recorded, replayed = twice(run)
    assert recorded == replayed
    with tracefork.Tape.open(tape) as opened:
        asked = [urlsplit(exchange.url).path.rpartition("/")[2] for exchange in opened.exchanges]
    assert len(asked) == (4 if COUNTS else 2)
    assert asked.count(MODELS[model]) == (2 if COUNTS else 0)


def test_a_count_of_tokens_that_was_not_recorded_ends_nothing(
    crew: Any, tape: Path, server: ProviderServer
) -> None:
    """CrewAI then guesses: what the models are asked and say is what was recorded."""

    def run(counts: bool) -> Any:
        options = {"respect_context_window": counts}
        llm = LLM(model="openai/gpt-4o-mini", api_key="none")
        return crew(llm_=llm, agents_=options, **PROMPTS).kickoff().raw

    with server.real_hosts():
        with tracefork_crewai.record(tape):
            recorded = run(counts=False)
        with tracefork_crewai.replay(tape) as replayed:
            assert run(counts=True) == recorded
    assert replayed.auxiliary_misses == (2 if COUNTS else 0)


def test_a_crewai_of_another_make_is_said(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One error names its version and those that are known; CrewAI is left as it was."""
    before = Memory.recall
    monkeypatch.delattr(CrewAIEventsBus, "_prepare_event")
    with (
        pytest.raises(UsageError, match=r"CrewAI 1\..* is made for crewai<1.17,>=1.15.10"),
        tracefork_crewai.record(tape),
    ):
        pass
    assert Memory.recall is before
    monkeypatch.undo()
    with tracefork_crewai.record(tape, overwrite=True):
        assert Memory.recall is not before


def test_every_public_name_is_there() -> None:
    """Each is loaded when it is asked for; another one is not there."""
    for name in tracefork_crewai.__all__:
        assert getattr(tracefork_crewai, name) is not None
    assert not hasattr(tracefork_crewai, "another")

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
    """Two tasks return the same with the network closed, and the digest is the tape's."""
    with tracefork_crewai.record(tape):
        recorded = crew(**PROMPTS).kickoff().raw
    asked = len(server.requests)
    server.stop()
    with closed_network() as network, tracefork_crewai.replay(tape) as run:
        assert crew(**PROMPTS).kickoff().raw == recorded
    assert network.attempts == []
    assert (run.exchanges, run.digest) == (asked, run.tape.digest)


def test_a_live_crew_answers_differently_each_time(crew: Any) -> None:
    """The control: this provider never repeats an answer."""
    assert crew(**PROMPTS).kickoff().raw != crew(**PROMPTS).kickoff().raw


COUNTS = hasattr(agent_utils, "_proactively_summarize_context")
MODELS = {"openai/gpt-4o-mini": "input_tokens", "anthropic/claude-sonnet-4-5": "count_tokens"}


@pytest.mark.parametrize("model", MODELS)
def test_token_counts_of_real_hosts_are_on_the_tape(
    crew: Any, twice: Any, tape: Path, server: ProviderServer, model: str
) -> None:
    """Versions of CrewAI that count tokens ask the real hosts for it, and no other host."""

    def run() -> Any:
        return crew(llm_=LLM(model=model, api_key="none"), **PROMPTS).kickoff().raw

    with server.real_hosts():
        recorded, replayed = twice(run)
    assert recorded == replayed
    with tracefork.Tape.open(tape) as opened:
        asked = [urlsplit(exchange.url).path.rpartition("/")[2] for exchange in opened.exchanges]
    assert len(asked) == (4 if COUNTS else 2)
    assert asked.count(MODELS[model]) == (2 if COUNTS else 0)


def test_an_unrecorded_token_count_does_not_end_a_replay(
    crew: Any, tape: Path, server: ProviderServer
) -> None:
    """CrewAI estimates the count then; requests and answers of models are the recorded ones."""

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


def test_an_unsupported_crewai_is_named_in_one_error(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has its version and the supported ones, and CrewAI is left unchanged."""
    before = Memory.recall
    monkeypatch.delattr(CrewAIEventsBus, "_prepare_event")
    with (
        pytest.raises(UsageError, match=r"crewai 1\..* is made for crewai<1.17,>=1.15.10"),
        tracefork_crewai.record(tape),
    ):
        pass
    assert Memory.recall is before
    monkeypatch.undo()
    with tracefork_crewai.record(tape, overwrite=True):
        assert Memory.recall is not before


def test_every_public_name_is_importable() -> None:
    """Each is loaded when it is first used; an unknown name raises."""
    for name in tracefork_crewai.__all__:
        assert getattr(tracefork_crewai, name) is not None
    assert not hasattr(tracefork_crewai, "another")

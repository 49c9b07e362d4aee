"""The answer of a task is what its agent said last, whatever the task requests after that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from crewai import LLM, Agent
from crewai.tools import tool
from pydantic import BaseModel

import tracefork_core as tracefork
from tracefork_crewai import fork
from tracefork_testkit import ModelRequest, ProviderServer, Reply


class Trip(BaseModel):
    """What a drafted text is converted to."""

    city: str


class Desk:
    """Drafts, reviews, converts and judges; notes what the reviews read."""

    def __init__(self) -> None:
        self.reviewed: list[str] = []

    def __call__(self, request: ModelRequest) -> Reply:
        if "response_format" in request.payload:
            return Reply('{"city": "Rome", "quality": 7}')
        prompt = request.last_user_text
        if "do review" not in prompt or "Task Output" in prompt:
            return Reply("What was drafted.")
        self.reviewed.append("given" if "What was given." in prompt else "drafted")
        return Reply("Fine.")


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def server(desk: Desk) -> Iterator[ProviderServer]:
    with ProviderServer(desk) as server:
        yield server


@tool
def look(word: str) -> str:
    """Look a word up."""
    return word


def converted(crew: Any, llm: LLM, url: str) -> None:
    """A model converts the text of an agent that has tools."""
    crew.tasks[0].output_pydantic = Trip


def told_to_a_model(crew: Any, llm: LLM, url: str) -> None:
    """A callback calls a model outside any agent."""
    crew.tasks[0].callback = lambda output: llm.call(f"Log this: {output.raw}")


def told_to_its_agent(crew: Any, llm: LLM, url: str) -> None:
    """A callback calls the same agent, outside the task."""
    writer = crew.tasks[0].agent
    crew.tasks[0].callback = lambda output: writer.kickoff(f"Log this: {output.raw}")


def told_for_the_crew(crew: Any, llm: LLM, url: str) -> None:
    """One callback of the crew runs after each task."""
    crew.task_callback = lambda output: llm.call(f"Log this: {output.raw}")


def told_over_http(crew: Any, llm: LLM, url: str) -> None:
    """A callback sends an HTTP request and calls no model."""
    crew.tasks[0].callback = lambda output: httpx.post(f"{url}/echo", json=output.raw)


AFTER = (converted, told_to_a_model, told_to_its_agent, told_for_the_crew, told_over_http)
"""What a task requests after its agent has answered."""


@pytest.fixture
def making(crew: Callable[..., Any], llm: Callable[..., Any], url: str) -> Callable[..., Any]:
    """Make a crew that drafts and reviews, whose first task makes requests after its agent."""

    def make(after: Callable[[Any, LLM, str], None]) -> Any:
        made = crew(draft="do draft", review="do review", agents_={"tools": [look]})
        after(made, llm(), url)
        return made

    return make


@pytest.mark.parametrize("after", AFTER)
def test_the_answer_of_the_agent_is_replaced(
    after: Callable[..., Any], making: Callable[..., Any], tape: Path, desk: Desk
) -> None:
    """Later requests of the task contain the new answer, and so do later tasks."""
    with tracefork.record(tape):
        making(after).kickoff()
    with fork(tape, at_task="draft", replace="What was given.", writes="allow") as branch:
        first, _ = making(after).kickoff().tasks_output
    assert first.raw == "What was given."
    assert first.pydantic == (Trip(city="Rome") if after is converted else None)
    assert desk.reviewed == ["drafted", "given"]
    assert branch.given == 1
    with tracefork.replay(branch.path):
        making(after).kickoff()


def test_the_answer_of_a_lone_agent_is_replaced(llm: Callable[..., Any], tape: Path) -> None:
    """A step converts its answer; the model of that step is not taken for the agent's answer."""

    def run() -> Any:
        known = {"goal": "help", "backstory": "You help.", "tools": [look]}
        writer = Agent(role="Writer", llm=llm(), **known)
        return writer.kickoff("Pick a city.", response_format=Trip)

    with tracefork.record(tape):
        assert run().raw == "What was drafted."
    right = tracefork.Replace("What was given.")
    with tracefork.fork(tape, "agent:Writer:answer", right) as branch:
        output = run()
    assert (output.raw, output.pydantic) == ("What was given.", Trip(city="Rome"))
    with tracefork.Tape.open(branch.path) as opened:
        paths = [exchange.step_path for exchange in opened.exchanges]
    assert paths == [("Writer", "gpt-4o-mini"), ("Writer", "converter", "gpt-4o-mini")]


def test_fork_replaces_an_answer_that_crew_test_judges(
    crew: Callable[..., Any], llm: Callable[..., Any], tape: Path, desk: Desk, tmp_path: Path
) -> None:
    """The judge of `Crew.test` is not a task of the crew, and has the same name in every run."""

    def run() -> None:
        crew(draft="do draft", review="do review").test(n_iterations=1, eval_llm=llm())

    def judged(tape: Path) -> list[tuple[str, ...]]:
        with tracefork.Tape.open(tape) as opened:
            return [exchange.step_path[:-1] for exchange in opened.exchanges]

    with tracefork.record(tape):
        run()
    with fork(tape, at_task="draft", replace="What was given.") as branch:
        run()
    assert desk.reviewed == ["drafted", "given"]
    assert judged(tape)[1] == ("desk", "draft", "evaluator", "Task Execution Evaluator")
    assert judged(branch.path) == judged(tape)
    with fork(tape, at_task=1, to=tmp_path / "again.tape"):
        run()
    assert desk.reviewed == ["drafted", "given", "drafted"]

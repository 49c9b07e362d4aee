"""Tests of crews with the mark `tape`: recorded once, replayed without a key and a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.suites import ASYNCIO, recorded_and_replayed

pytestmark = pytest.mark.many_processes

TESTS = """
import os, pytest
from crewai import LLM, Agent, Crew, Task
from crewai.flow.flow import Flow, listen, start
from crewai.tools import tool
from tracefork_crewai import attach

URL = os.environ["PROVIDER"] + "/v1"
PROMPT = '@call lookup_order {"order": 17}\\n@then\\n@say It was delivered.'

@tool
def lookup_order(order: int) -> str:
    "Look up an order."
    with open("ran.log", "a") as log:
        log.write(f"{order}\\n")
    return f"order {order} was delivered"

def crew():
    model = LLM(model="openai/gpt-4o-mini", base_url=URL)  # wants a key
    desk = Agent(role="Desk", goal="help", backstory="You help.", llm=model, tools=[lookup_order])
    task = Task(name="order", description=PROMPT, expected_output="an answer", agent=desk)
    return attach(Crew(name="desk", agents=[desk], tasks=[task]))

class Shop(Flow):
    @start()
    def ask(self):
        return crew().kickoff().raw

    @listen(ask)
    def shout(self, answer):
        return answer.upper()

@pytest.mark.tape
def test_crew(tape):
    assert "It was delivered." in crew().kickoff().raw
    (call,) = tape.tools
    assert call.name == "lookup_order" and call.arguments == {"order": 17}
    assert len(tape.calls) == 2

@pytest.mark.tape
def test_flow():
    assert "IT WAS DELIVERED." in Shop().kickoff()
"""


def test_a_crew_is_recorded_once_and_replayed_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tool runs once, as it is recorded. Another prompt fails with the card."""
    suite, replayed = recorded_and_replayed(TESTS, tmp_path, monkeypatch)
    assert replayed.outcomes == {"test_crew": "passed", "test_flow": "passed"}, replayed.text
    assert (tmp_path / "ran.log").read_text() == "17\n17\n"  # Once for each test.
    assert suite.tapes == {"test_agent/test_crew.tape", "test_agent/test_flow.tape"}
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789abcdefghijkl")
    again = suite.here(*ASYNCIO, "--tape-mode=new")
    assert again.failed == set(), again.text
    assert (tmp_path / "ran.log").read_text() == "17\n17\n"
    suite.edit("It was delivered.'", "It was delivered.!'")
    different = suite.here(*ASYNCIO)
    assert different.failed >= {"test_crew", "test_flow"}
    assert "▸ order" in different.text

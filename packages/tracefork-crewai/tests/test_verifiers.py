"""A hybrid replay of a crew runs its verifier again, and no other tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.hybrid import check_only_the_verifier_runs_again, marks

pytestmark = pytest.mark.many_processes

AGENT = """
import os
import tracefork_core as tracefork
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from tracefork_crewai import attach

TASK = '@call edit {"text": "new"}\\n@then\\n@call run_tests {}\\n@then\\n@say The tests fail.'

@tool
def edit(text: str) -> str:
    "Write a file."
    with open("edits.log", "a") as log:
        log.write(text + "\\n")
    return "written"

@tool
@MARK
def run_tests() -> dict:
    "Run the tests."
    with open("runs.log", "a") as log:
        log.write("ran\\n")
    return {"exit_code": 1, "stderr": open("state").read()}

model = LLM(model="openai/gpt-4o-mini", base_url=os.environ["PROVIDER"] + "/v1")
desk = Agent(role="Desk", goal="mend", backstory="You mend.", llm=model, tools=[edit, run_tests])
task = Task(name="mend", description=TASK, expected_output="an answer", agent=desk)
print(attach(Crew(name="desk", agents=[desk], tasks=[task])).kickoff().raw)
"""


@marks("(lambda function: function)")
def test_only_the_verifier_runs_again(mark: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """The edit is answered from the tape, and the tests run once more."""
    check_only_the_verifier_runs_again(AGENT, tmp_path, mark, options)

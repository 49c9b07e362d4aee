"""A hybrid replay of an agent runs its verifier again, and no other tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.hybrid import check_only_the_verifier_runs_again, marks

pytestmark = pytest.mark.many_processes

AGENT = """
import os
import tracefork_core as tracefork
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI

TASK = '@call edit {"text": "new"}\\n@then\\n@call run_tests {}\\n@then\\n@say The tests fail.'

@function_tool
def edit(text: str) -> str:
    "Write a file."
    with open("edits.log", "a") as log:
        log.write(text + "\\n")
    return "written"

@function_tool
@MARK
def run_tests() -> dict:
    "Run the tests."
    with open("runs.log", "a") as log:
        log.write("ran\\n")
    return {"exit_code": 1, "stderr": open("state").read()}

client = AsyncOpenAI(base_url=os.environ["PROVIDER"] + "/v1")
model = OpenAIChatCompletionsModel("gpt-5-mini", client)
desk = Agent(name="Desk", model=model, tools=[edit, run_tests])
print(Runner.run_sync(desk, TASK).final_output)
"""


@marks("(lambda function: function)")
def test_only_the_verifier_runs_again(mark: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """The edit is answered from the tape, and the tests run once more."""
    check_only_the_verifier_runs_again(AGENT, tmp_path, mark, options)

"""A hybrid replay of an agent runs its verifier again, and no other tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.hybrid import hybrid_replay

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
DECLARED, NAMED = "tracefork.tool(verifier=True)", "(lambda function: function)"


@pytest.mark.parametrize(
    ("mark", "options"), [(DECLARED, ()), (NAMED, ("--verifier", "run_tests"))]
)
def test_only_the_verifier_runs_again(mark: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """It is declared in the code, or named: the file that it reads is as it was."""
    (tmp_path / "state").write_text("broken")
    document = hybrid_replay(AGENT.replace("MARK", mark), tmp_path, *options)
    assert document["exit"] == 0, document["divergence"] or document["reason"]
    (one,) = document["verifications"]
    assert (one["tool"], one["verdict"]) == ("run_tests", "same")
    assert one["now"] == [one["recorded"]]
    assert one["now"][0]["exit_code"] == 1
    assert (tmp_path / "edits.log").read_text() == "new\n"
    assert (tmp_path / "runs.log").read_text() == "ran\nran\n"

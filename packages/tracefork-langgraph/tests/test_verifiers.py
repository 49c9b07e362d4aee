"""A hybrid replay of a graph runs its verifier again, and no other tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.hybrid import hybrid_replay

AGENT = """
import os
import tracefork_core as tracefork
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from tracefork_langgraph import attach

TASK = '@call edit {"text": "new"}\\n@then\\n@call run_tests {}\\n@then\\n@say The tests fail.'

@tracefork.tool(effect="write")
def edit(text: str) -> str:
    "Write a file."
    with open("edits.log", "a") as log:
        log.write(text + "\\n")
    return "written"

@MARK
def run_tests() -> dict:
    "Run the tests."
    with open("runs.log", "a") as log:
        log.write("ran\\n")
    return {"exit_code": 1, "stderr": open("state").read()}

model = ChatOpenAI(model="gpt-5-mini", base_url=os.environ["PROVIDER"] + "/v1")
desk = attach(create_agent(model, [edit, run_tests]))
print(desk.invoke({"messages": TASK})["messages"][-1].content)
"""
DECLARED, NAMED = "tracefork.tool(verifier=True)", 'tracefork.tool(effect="read")'


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

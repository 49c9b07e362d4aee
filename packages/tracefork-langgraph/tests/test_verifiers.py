"""A hybrid replay of a graph runs its verifier again, and no other tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.hybrid import check_only_the_verifier_runs_again, marks

pytestmark = pytest.mark.many_processes

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


@marks('tracefork.tool(effect="read")')
def test_only_the_verifier_runs_again(mark: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """The edit is answered from the tape, and the tests run once more."""
    check_only_the_verifier_runs_again(AGENT, tmp_path, mark, options)

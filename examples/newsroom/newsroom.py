"""A newsroom: five tasks turn a question about the shop's figures into a published brief.

python newsroom.py "How did turntables sell this spring?"
"""

import re
import sys
from functools import partial
from typing import Any

from crewai import LLM, Agent, Crew, Process, Task
from crewai.tools import tool

QUESTION = "How did turntables sell this spring?"
ARCHIVE = {
    "turntables": "Spring: 1,120 turntables sold. The spring before: 1,000.",
    "tonearms": "Spring: 1,210 tonearms sold. The spring before: 1,000.",
}
BRIEFS: list[str] = []


@tool
def search_archive(product: str) -> str:
    """Look up how often a product was sold, in the shop's archive."""
    return ARCHIVE.get(product, f"Nothing about {product}.")


@tool
def publish(brief: str) -> str:
    """Publish a brief, and say where it is to be found."""
    BRIEFS.append(brief)
    return "It is on page one."


def names_a_figure(output: Any) -> tuple[bool, Any]:
    """Accept a brief that names its figure in per cent."""
    match = re.search(r"\d+ %", output.raw)
    return (True, output.raw) if match else (False, "Name the figure in per cent.")


def newsroom(*, guardrail: Any = names_a_figure, memory: bool = True) -> Crew:
    """Make a new crew, one for each run. The guardrail may be a sentence that a model checks."""
    agent = partial(_agent, LLM(model="gpt-5-mini"))
    researcher = agent("Researcher", "find the shop's own figures", tools=[search_archive])
    analyst = agent("Analyst", "say what figures mean", allow_delegation=True)
    statistician = agent("Statistician", "work out one figure from others")
    writer = agent("Writer", "write a brief that anybody understands")
    editor = agent("Editor", "let nothing through that is vague")
    publisher = agent("Publisher", "bring briefs to readers", tools=[publish])
    research = _task("research", "Find the figures for: {question}", researcher)
    analyse = _task("analyse", "Have the Statistician work out the change, and say it.", analyst)
    write = _task("write", "Write a brief of two sentences.", writer)
    review = _task("review", "Edit the brief.", editor, guardrail=guardrail)
    return Crew(
        name="newsroom",
        agents=[researcher, analyst, statistician, writer, editor, publisher],
        tasks=[research, analyse, write, review, _task("publish", "Publish it.", publisher)],
        process=Process.sequential,
        memory=memory,
    )


def _agent(llm: LLM, role: str, goal: str, **options: Any) -> Agent:
    return Agent(role=role, goal=goal, backstory="You work in a shop.", llm=llm, **options)


def _task(name: str, description: str, agent: Agent, **options: Any) -> Task:
    return Task(
        name=name, description=description, expected_output="One line.", agent=agent, **options
    )


def run(question: str = QUESTION) -> str:
    """Print and return the brief that answers a question."""
    brief = str(newsroom().kickoff({"question": question}).raw)
    print(brief)
    return brief


def is_right(brief: str) -> bool:
    """Return whether a brief has the figure from the archive."""
    return "12 %" in brief


if __name__ == "__main__":
    run(" ".join(sys.argv[1:]) or QUESTION)

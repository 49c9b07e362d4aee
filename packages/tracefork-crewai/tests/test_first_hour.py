"""A crew of two agents walks through the first hour, at night: each command imports CrewAI."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.first_hour import IS_NIGHT, FirstHour

from tracefork_testkit import ModelRequest, ProviderServer, Reply

AGENT = """\
from crewai import Agent, Crew, Task


def member(role):
    return Agent(role=role, goal="help", backstory="You help.", llm="gpt-5-mini")


def main():
    finder, writer = member("Finder"), member("Writer")
    find = Task(
        name="find", description="Where is order 17?", expected_output="A place", agent=finder
    )
    draft = Task(
        name="draft",
        description="Tell the customer.",
        expected_output="A letter",
        agent=writer,
        context=[find],
    )
    return Crew(name="desk", agents=[finder, writer], tasks=[find, draft]).kickoff().raw


if __name__ == "__main__":
    print(main())
"""


class Desk:
    """Finds the wrong order in its first answer, and writes what was found."""

    def __init__(self) -> None:
        self._asked = 0

    def __call__(self, request: ModelRequest) -> Reply:
        self._asked += 1
        if "Writer" in request.system:
            found = "delayed" if "is delayed" in request.last_user_text else "on its way"
            return Reply(f"Dear customer, it is {found}.")
        return Reply("It is on its way." if self._asked == 1 else "It is delayed.")


@pytest.mark.skipif(not IS_NIGHT, reason="at night: some twenty commands import CrewAI")
@pytest.mark.many_processes
def test_a_crew_of_two_walks_through_the_first_hour(tmp_path: Path) -> None:
    """Nothing has to be declared or allowed: it has no tools."""
    (tmp_path / "agent.py").write_text(AGENT)
    with ProviderServer(Desk()) as server:
        FirstHour(tmp_path, server.url).walk(at="task:draft:answer", text="It is lost.")

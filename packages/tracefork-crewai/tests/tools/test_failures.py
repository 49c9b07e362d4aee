"""A tool that raises also raises in the replay, with the same text and as often."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crewai.tools import BaseTool, tool

import tracefork_core as tracefork

ASK = '@call get {"order": 17}'


class NotThereError(Exception):
    """An exception of the program."""


class ArgumentsError(Exception):
    """An exception that cannot be built from a message alone."""

    def __init__(self, code: int, what: str) -> None:
        super().__init__(code, what)
        self.code, self.what = code, what

    def __str__(self) -> str:
        return f"{self.what} ({self.code})"


def builtin() -> str:
    """Get it."""
    raise KeyError("seventeen")


def own() -> str:
    """Get it."""
    raise NotThereError("not there")


def hidden() -> str:
    """Get it."""
    raise made_elsewhere()


def made_elsewhere() -> Exception:
    """Return an exception whose class the tool does not name."""
    return ArgumentsError(404, "nothing")


def failing(work: Any, ran: Any) -> Any:
    """Return a tool that raises as `work` does."""

    class Get(BaseTool):
        name: str = "get"
        description: str = "Get it."

        def _run(self, order: int) -> str:
            ran.append("get")
            return str(work())

    return Get()


@pytest.mark.parametrize(("work", "said"), [(builtin, "'seventeen'"), (hidden, "nothing (404)")])
def test_an_agent_reads_the_tools_own_error(
    way: str, work: Any, said: str, calling: Any, twice: Any, prompts: Any, ran: Any, exchanges: Any
) -> None:
    """In the exception's own words. An agent that reasons in text retries, up to six times."""
    run = calling(way, ASK, lambda: [failing(work, ran)])
    run()
    times = len(ran.now())
    unrecorded = prompts().count(said)
    recorded, replayed = twice(run)
    assert replayed.raw == recorded.raw
    assert unrecorded
    assert prompts().count(said) == 2 * unrecorded
    assert len(ran.now()) == len(exchanges()) == times == (1 if way == "native" else 6)


def test_a_program_catches_an_exception_that_the_tool_names(tape: Path) -> None:
    """If the tool's code names the class, and a message alone can build it."""
    for session in (tracefork.record, tracefork.replay):
        with session(tape):
            with pytest.raises(KeyError, match="seventeen"):
                tool("get")(builtin).run()
            with pytest.raises(NotThereError, match="not there"):
                tool("get")(own).run()


def test_any_other_exception_keeps_its_name_and_message(tape: Path) -> None:
    """The control: the class itself is lost, in both runs alike."""
    with pytest.raises(ArgumentsError):
        tool("get")(hidden).run()
    for session in (tracefork.record, tracefork.replay):
        with session(tape), pytest.raises(tracefork.ToolError) as caught:
            tool("get")(hidden).run()
        assert (type(caught.value).__name__, str(caught.value)) == (
            "ArgumentsError",
            "nothing (404)",
        )


def test_arguments_that_crewai_rejects_make_no_exchange(
    tape: Path, ran: Any, exchanges: Any
) -> None:
    """Invalid arguments are refused before the tool is called, in both runs."""

    @tool
    def get(order: int) -> str:
        """Get it."""
        ran.append("get")
        return "got"

    for session in (tracefork.record, tracefork.replay):
        with session(tape):
            with pytest.raises(ValueError, match="validation failed"):
                get.run(order="many")
            assert get.run(order=1) == "got"
    assert ran.now() == ["get"]
    assert exchanges() == [("get", {"order": 1})]

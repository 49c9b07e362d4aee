"""A person gives a text in place of a tool's result, and the framework gets an object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tracefork_core as tracefork
from tracefork_core.adapters import FrameworkValues, atool_exchange, tool_exchange


@dataclass
class Result:
    """What a framework expects of each tool."""

    output: str
    failed: bool = False


class Values(FrameworkValues):
    """Encodes it."""

    tag = "some"

    def fields(self, value: object) -> dict[str, Any] | None:
        return vars(value) if isinstance(value, Result) else None

    def built(self, name: str, fields: dict[str, Any]) -> object:
        return Result(**fields)

    def said(self, text: str) -> object:
        return Result(text)


class Unsaid(Values):
    """An adapter that does not say what a text becomes."""

    said = FrameworkValues.said


def call(values: FrameworkValues) -> object:
    """Call a tool of the framework."""
    return tool_exchange("find", {}, lambda: Result("found"), values)


async def acall(values: FrameworkValues) -> object:
    """Call it in async code."""

    async def find() -> Result:
        return Result("found")

    return await atool_exchange("find", {}, find, values)


async def test_a_text_becomes_what_the_framework_expects(tape: Path, tmp_path: Path) -> None:
    """In the fork, and again when the branch is replayed."""
    with tracefork.record(tape):
        assert call(Values()) == await acall(Values()) == Result("found")
    branch = tmp_path / "branch.tape"
    given: dict[int | str, Any] = {1: tracefork.Replace(text="lost, too")}
    with tracefork.fork(tape, at=0, replace="lost", change=given, to=branch):
        assert call(Values()) == Result("lost")
        assert await acall(Values()) == Result("lost, too")
    with tracefork.replay(branch):
        assert call(Values()) == Result("lost")
        assert await acall(Values()) == Result("lost, too")


async def test_a_text_stays_one_where_nothing_else_is_said(tape: Path, tmp_path: Path) -> None:
    """A JSON document is built as a recorded result is."""
    with tracefork.record(tape):
        call(Unsaid())
    with tracefork.fork(tape, at=0, replace="lost", to=tmp_path / "text.tape"):
        assert call(Unsaid()) == "lost"
    document = {"some": "Result", "output": "lost", "failed": True}
    change = tracefork.Replace(document=document)
    with tracefork.fork(tape, at=0, replace=change, to=tmp_path / "document.tape"):
        assert call(Unsaid()) == Result("lost", failed=True)

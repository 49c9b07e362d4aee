"""A tool's result keeps its type in a replay, and agents receive the same text for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from crewai.tools import BaseTool, tool
from crewai.tools.tool_failure import ToolFailure
from pydantic import BaseModel, ConfigDict, Field

import tracefork_core as tracefork

ASK = "@call get {}"


class State(Enum):
    LOST = "lost"


class Line(BaseModel):
    what: str
    seen: datetime


class Report(BaseModel):
    number: int = Field(alias="orderNumber")
    state: State
    lines: list[Line]


@dataclass
class Parcel:
    weight: float


class Secretive:
    def __repr__(self) -> str:
        return "a parcel, not to be opened"


class Shipment(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    parcel: Secretive


LINE = Line(what="turntable", seen=datetime(2026, 1, 2, tzinfo=UTC))
REPORT = Report(orderNumber=17, state=State.LOST, lines=[LINE])


def plain() -> dict[str, Any]:
    """Get it."""
    return {"a": (1, {2}), "when": LINE.seen, "crewai": "ToolFailure", "n": 0.1}


def model() -> Report:
    """Get it."""
    return REPORT


def models() -> list[Report] | None:
    """Get it."""
    return [REPORT, REPORT]


def data() -> Parcel:
    """Get it."""
    return Parcel(1.5)


def failing() -> Report | ToolFailure:
    """Get it."""
    return ToolFailure(message="gone", code="404", details={"at": (1, 2)}, retryable=True)


WHOLE = [plain, model, models, data, failing]


def made(work: Callable[..., Any]) -> Any:
    """Return a tool called `get`, which does `work`."""
    return tool("get")(work)


@pytest.mark.parametrize("work", WHOLE)
def test_results_keep_their_type(tape: Path, work: Any) -> None:
    """Plain values, CrewAI's own classes, and classes that the tool's annotation names."""
    live = work()
    with tracefork.record(tape):
        recorded = made(work).run()
    with tracefork.replay(tape):
        replayed = made(work).run()
    assert replayed == recorded == live
    assert type(replayed) is type(recorded) is type(live)


def test_a_class_that_the_tool_no_longer_declares_is_refused(tape: Path) -> None:
    """The control: a name on a tape is not enough to find a class."""
    with tracefork.record(tape):
        made(model).run()

    def undeclared() -> Any:
        """Get it."""

    with pytest.raises(tracefork.ReplayError, match="'Report'"), tracefork.replay(tape):
        made(undeclared).run()


def undeclared() -> Any:
    """Get it."""
    return REPORT


def opaque() -> Any:
    """Get it."""
    return Secretive()


def declared_in_vain() -> list[Shipment]:
    """Get it."""
    return [Shipment(parcel=Secretive())]


def test_agents_read_the_same_text_in_every_run(
    way: str, calling: Any, twice: Any, prompts: Any, ran: Any
) -> None:
    """In a recording, in its replay, and without either; for undeclared classes too."""

    def running(work: Any) -> Any:
        def get() -> Any:
            ran.append(work.__name__)
            return work()

        get.__doc__, get.__annotations__ = work.__doc__, work.__annotations__
        return tool(work.__name__)(get)

    works = [*WHOLE, undeclared, opaque, declared_in_vain]
    calls = "\n".join(f"@call {work.__name__} {{}}" for work in works)
    run = calling(way, calls, lambda: [running(work) for work in works])
    run()
    texts = [made(work).format_output_for_agent(work()) for work in works]
    unrecorded = [prompts().count(text) for text in texts]
    twice(run)
    assert all(unrecorded)
    assert [prompts().count(text) for text in texts] == [2 * count for count in unrecorded]
    assert ran.now() == sorted(2 * [work.__name__ for work in works])


def test_a_result_that_a_program_cannot_get_back_is_refused(tape: Path) -> None:
    """A program needs the object and not a text; the error says what to do."""
    said = r"the tool get has run, but .* a Secretive: .*Return plain values, or annotate"
    for session in (tracefork.record, tracefork.replay):
        with session(tape), pytest.raises(tracefork.UsageError, match=said):
            made(lone).run()


def lone() -> Any:
    """Get it."""
    return Secretive()


def test_result_schema_declares_a_class(way: str, calling: Any, twice: Any, prompts: Any) -> None:
    """`result_schema` needs no annotation beside it."""

    class Get(BaseTool):
        name: str = "get"
        description: str = "Get it."
        result_schema: type[BaseModel] | None = Report

        def _run(self) -> Any:
            return REPORT

    twice(calling(way, ASK, lambda: [Get()]))
    assert REPORT.model_dump_json() in prompts()

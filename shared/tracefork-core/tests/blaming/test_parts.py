"""A report ranks tasks, the agents in a task, and the exchanges of an agent."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from tracefork_core.blaming.engine.probe import Settings
from tracefork_core.blaming.engine.result import Result
from tracefork_core.blaming.parts import Part, Weighed, pieces, weighed
from tracefork_core.blaming.report import Report
from tracefork_core.blaming.trials.budget import Budget
from tracefork_core.blaming.trials.trial_journal import Header
from tracefork_core.blaming.trials.units import UnitName
from tracefork_core.cli.display.blame_report import document, print_report

from .worlds import Agent, echo, errs, judged, plain, ran

TASKS = {"research": "Analyst", "analyse": "Analyst", "write": "Writer"}
FAULT = 6


def parts_of_a_crew() -> tuple[Part, ...]:
    """Return three tasks of four exchanges, each split between two agents."""
    found = []
    for i, (task, agent) in enumerate(TASKS.items()):
        halves = [(agent, (4 * i, 4 * i + 1)), ("Helper", (4 * i + 2, 4 * i + 3))]
        inside = [
            Part(kind="agent", step=("desk", task, name), units=units) for name, units in halves
        ]
        units = tuple(range(4 * i, 4 * i + 4))
        found.append(Part(kind="task", step=("desk", task), units=units, parts=tuple(inside)))
    return tuple(found)


@pytest.fixture(scope="module")
def result() -> Result:
    """Blame a run of twelve steps whose seventh failed, by tasks."""
    agent = Agent(plain(12, u6=errs(0.1)), ran(12, FAULT), lambda run: float(run[FAULT] == 1))
    return judged(agent, 1, groups=[part.units for part in parts_of_a_crew()])


@pytest.fixture(scope="module")
def parts(result: Result) -> tuple[Weighed, ...]:
    return weighed(result, parts_of_a_crew(), 0.05)


def test_the_task_to_blame_is_ranked_first(result: Result, parts: tuple[Weighed, ...]) -> None:
    """It is named, and its effect has an interval above 0, unlike the others."""
    first, *others = parts
    assert first.part.step == ("desk", "analyse")
    assert (first.is_named, [one.is_named for one in others]) == (True, [False, False])
    assert first.effect is not None
    assert first.interval is not None
    assert first.effect > 0.5
    assert first.interval[0] <= first.effect <= first.interval[1]
    assert first.chance > 0.9
    for one in others:
        assert one.effect is None or one.interval is None or one.interval[0] <= 0
    assert sum(one.chance for one in parts) == pytest.approx(
        sum(unit.chance for unit in result.units)
    )


def test_only_the_named_task_ranks_its_agents(parts: tuple[Weighed, ...]) -> None:
    """The search went into that task, so its agents have effects."""
    inside = parts[0].parts
    assert [(one.part.step[-1], one.is_named) for one in inside] == [
        ("Helper", True),
        ("Analyst", False),
    ]
    assert (inside[0].effect or 0) > 0.5
    assert all(one.parts == () for one in parts[1:])


def test_parts_that_interleave_have_no_effect_of_their_own(result: Result) -> None:
    """The control: their effects are mixed with those of others, so only probabilities add up."""
    halves = [
        Part(kind="agent", step=(name,), units=tuple(range(i, 12, 2)))
        for i, name in [(0, "even"), (1, "odd")]
    ]
    found = weighed(
        result,
        [Part(kind="crew", step=("desk",), units=tuple(range(12)), parts=tuple(halves))],
        0.05,
    )
    inside = found[0].parts
    assert [(one.part.step, one.effect) for one in inside] == [(("even",), None), (("odd",), None)]


def test_a_part_is_divided_where_others_ran_inside_of_it() -> None:
    """An agent that ran others continues after each; one that ran beside it does not divide it."""
    desk = Part(kind="agent", step=("desk",), units=(0, 1, 4, 6, 7))
    first = Part(kind="agent", step=("desk", "ask", "first"), units=(2, 3))
    second = Part(kind="agent", step=("desk", "ask", "second"), units=(5,))
    assert pieces([desk, first, second]) == ((0, 1), (4,), (6, 7), (2, 3), (5,))
    beside = Part(kind="agent", step=("beside",), units=(2, 3, 5))
    assert pieces([desk, beside]) == (desk.units, beside.units)


def test_an_agent_that_errs_inside_another_is_named() -> None:
    """The outer agent repeats what the inner one said, and errs as often as that does."""
    desk = Part(kind="agent", step=("desk",), units=(0, 2))
    inner = Part(kind="agent", step=("desk", "ask", "inner"), units=(1,))
    agent = Agent(
        plain(3, u1=errs(0.1), u2=echo(1)),
        (0, 1, 1),
        lambda run: float(run[2] == 1),
    )
    result = judged(agent, 1, groups=pieces([desk, inner]))
    first, other = weighed(result, [desk, inner], 0.05)
    assert (first.part, first.is_named, other.is_named) == (inner, True, False)
    assert (first.effect or 0) > 0.5


@pytest.fixture(scope="module")
def report(result: Result, parts: tuple[Weighed, ...]) -> Report:
    names = [
        UnitName(unit=unit, asked="m", step=(*part.step, "m"))
        for task in parts_of_a_crew()
        for part in task.parts
        for unit in part.units
    ]
    header = Header(
        digest="d",
        units=12,
        seed=0,
        settings=Settings(),
        groups=(),
        agent="a",
        oracle="o",
        regrades=0,
        tail={},
        version="1",
    )
    return Report(
        tape="run.tape",
        header=header,
        budget=Budget(),
        units=tuple(names),
        result=result,
        parts=parts,
    )


def test_the_report_goes_from_coarse_to_fine(report: Report) -> None:
    """It lists tasks, the agents of the named task, and its exchanges. The JSON has all parts."""
    stream = io.StringIO()
    print_report(Console(file=stream, width=100, markup=False, highlight=False), report)
    lines = stream.getvalue().splitlines()
    at = [
        lines.index(line)
        for line in (
            "  by task",
            "  in desk ▸ analyse, by agent",
            "  in desk ▸ analyse ▸ Helper, by exchange",
        )
    ]
    assert at == sorted(at)
    assert lines[at[0] + 1].startswith("    ● analyse ")
    assert lines[at[1] + 1].startswith("    ● Helper ")
    assert lines[at[2] + 1].startswith(f"    ● exchange {FAULT} ")
    told = document(report, 0)["parts"]
    assert msgspec.convert(told, tuple[Weighed, ...]) == report.parts


def test_steps_with_equal_names_are_listed_with_their_exchanges(report: Report) -> None:
    """A node that ran twice is two parts."""
    again = [
        msgspec.structs.replace(one, part=msgspec.structs.replace(one.part, step=("desk", "work")))
        for one in report.parts[:2]
    ]
    stream = io.StringIO()
    parts = (*again, report.parts[2])
    told = msgspec.structs.replace(report, parts=parts)
    print_report(Console(file=stream, width=100, markup=False, highlight=False), told)
    printed = stream.getvalue()
    for one in again:
        assert f" work (exchanges {', '.join(map(str, one.part.units))}) " in printed
    assert f" {report.parts[2].part.step[-1]}  " in printed


def test_a_notebook_shows_the_ranking(report: Report) -> None:
    """With the words of the run escaped, and the named exchange first."""
    evil = "<script>owned()</script>"
    units = tuple(msgspec.structs.replace(one, step=(evil,)) for one in report.units)
    shown = msgspec.structs.replace(report, units=units)._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;owned()" in shown
    assert f"<b>blame: {report.result.verdict.kind}</b>" in shown
    first = shown.partition("<tbody>")[2].partition("</td>")[0]
    assert first.endswith(f">{FAULT}")

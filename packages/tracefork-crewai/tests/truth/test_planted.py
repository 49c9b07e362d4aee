"""Blame names the task that fails once in a crew of five, and the step in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_crewai import blame
from tracefork_testkit import ProviderServer

EXAMPLE = Path(__file__).parents[4] / "examples" / "newsroom"
CHECKED = "The brief names a figure in per cent."
FAULTS = {
    "research": ("research", "Researcher"),
    "search": ("research", "Researcher"),
    "tool": ("research", "search_archive"),
    "analyse": ("analyse", "Analyst"),
    "delegated": ("analyse", "Statistician"),
    "write": ("write", "Writer"),
    "review": ("review", "Editor"),
    "guardrail": ("review", "Guardrail Agent"),
    "publish": ("publish", "Publisher"),
}
"""What fails, its task, and a step on the way to it. A fault is in a model's answer, in a call or
the result of a tool, in a delegated agent or in a guardrail."""


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import a module of the example."""
    monkeypatch.syspath_prepend(EXAMPLE)
    yield import_module
    for name in ("newsroom", "provider"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("fault", FAULTS)
def test_blame_names_the_task(
    fault: str, example: Callable[[str], ModuleType], tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task and the step in it are named for sure; later tasks only passed the error on."""
    newsroom = example("newsroom")
    if fault == "tool":
        once = iter([newsroom.ARCHIVE["tonearms"]])
        archive = newsroom.ARCHIVE["turntables"]
        monkeypatch.setattr(newsroom, "ARCHIVE", _Archive(lambda: next(once, archive)))
    inputs = {"question": newsroom.QUESTION}

    def crew() -> Any:
        return newsroom.newsroom(guardrail=CHECKED)

    with ProviderServer(example("provider").Model(fault)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        with tracefork.record(tape):
            output = crew().kickoff(inputs)
        assert not newsroom.is_right(output.raw)
        report = blame(
            tape, crew, lambda it: newsroom.is_right(it.raw), inputs=inputs, writes="allow"
        )
    task, inside = FAULTS[fault]
    assert report.result.verdict.kind == "single"
    assert report.parts[0].is_named
    assert report.parts[0].part.step[-1] == task
    (unit,) = report.result.verdict.units
    assert inside in report.units[unit].step


class _Archive:
    """An archive that answers with the return value of a function."""

    def __init__(self, look_up: Callable[[], str]) -> None:
        self._look_up = look_up

    def get(self, product: str, default: str) -> str:
        return self._look_up()

"""The page of benchmarks is of the measurements there are, and leaves no miss out."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
FOLDER = ROOT / "benchmarks"

Load = Callable[[str], Any]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Import modules of the folder, and forget them again: their names are short."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if name in {file.stem for file in FOLDER.glob("*.py")}:
            del sys.modules[name]


def test_every_measurement_is_on_the_page_with_each_of_its_cases(load: Load) -> None:
    """In the order in which they are made, and no other."""
    modules = [load(name) for name in load("run").MEASUREMENTS]
    _, sections, _ = load("document").read(PAGE)
    assert [one.title for one in sections] == [module.TITLE for module in modules]
    for section, module in zip(sections, modules, strict=True):
        cases = list(dict.fromkeys(line.case for line in section.lines))
        assert cases == list(module.CASES), section.title


def test_the_page_is_as_it_was_written(load: Load) -> None:
    """Its aims are reckoned from its tables: none can be met that is missed below."""
    document = load("document")
    _, sections, _ = document.read(PAGE)
    assert between(document, PAGE.read_text()) == document.written(sections)
    missed = sum(line.verdict == "missed" for one in sections for line in one.lines)
    assert document.summary(sections).count("**missed**") == missed > 0


def test_a_miss_that_is_not_told_is_found(load: Load, tmp_path: Path) -> None:
    """The control: one word of the aims, and one of a table, changed by hand."""
    document = load("document")
    for old, new in (("**missed**", "met"), ("| missed |", "| met |")):
        page = tmp_path / "page.md"
        page.write_text(PAGE.read_text().replace(old, new, 1))
        _, sections, _ = document.read(page)
        assert between(document, page.read_text()) != document.written(sections)


def test_a_measurement_takes_the_place_of_the_one_before(load: Load, tmp_path: Path) -> None:
    """What is around the tables stays, and so do the others."""
    document, table = load("document"), load("table")
    row = table.Row(
        "8 tasks", "tracefork-core", table.Spread.of([2.0]), "ms", "", "≤ 1 ms", met=False
    )
    measured = table.Measurement(load("fan_out").TITLE, "A test.", [row])
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text())
    order = [load(name).TITLE for name in load("run").MEASUREMENTS]
    document.write(page, document.Section.of(measured, "today"), order)
    before, sections, after = document.read(page)
    assert (before, after) == document.read(PAGE)[::2]
    assert [one.title for one in sections] == order
    (written,) = (one for one in sections if one.title == measured.title)
    assert [(line.case, line.median, line.verdict) for line in written.lines] == [
        ("8 tasks", "2.00 ms", "missed")
    ]
    assert between(document, page.read_text()).count(f"{measured.title}: 8 tasks") == 1


def test_tables_have_one_place() -> None:
    """The page that explains has none of them."""
    explained = (ROOT / "docs" / "explanation" / "performance.md").read_text()
    assert "\n|" not in explained
    assert "```text" not in explained


def between(document: Any, text: str) -> str:
    """Return what stands between the marks."""
    written: str = text.split(f"{document.BEGIN}\n\n")[1].split(f"\n{document.END}", maxsplit=1)[0]
    return written

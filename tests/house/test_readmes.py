"""READMEs and documents: what their examples import exists."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from house.repository import ROOT, Package

FENCED_PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("*/*/*.md")])


def imported(code: str) -> list[tuple[str, str | None]]:
    """Return (module, name) for each import of our own packages in `code`."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found.extend((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.extend((node.module, alias.name) for alias in node.names)
    return [(module, name) for module, name in found if module.startswith("tracefork")]


def test_a_readme_shows_an_example(package: Package) -> None:
    """Each package's README shows Python that imports the package."""
    examples = FENCED_PYTHON.findall((package.folder / "README.md").read_text())
    modules = {module for example in examples for module, _ in imported(example)}
    assert package.module in modules


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_imports_exists(page: Path) -> None:
    """Every import of our packages in a page's Python examples resolves."""
    for example in FENCED_PYTHON.findall(page.read_text()):
        for module, name in imported(example):
            loaded = importlib.import_module(module)
            # What needs a framework that is not installed here is looked up in the list of names.
            known = name is None or name in getattr(loaded, "__all__", ()) or hasattr(loaded, name)
            assert known, f"{module} has no {name}"


LINK = re.compile(r"\]\(([^)\s#]+)")
BASE = re.compile(r"https://github\.com/tracefork/tracefork/(?:blob|tree)/main/(.+)")


def test_links_in_a_packages_readme_work_on_its_index_page(package: Package) -> None:
    """An index shows the README alone: a relative link is dead there. Ours lead to real files."""
    links = LINK.findall((package.folder / "README.md").read_text())
    assert [link for link in links if not link.startswith("https://")] == []
    own = [match[1] for link in links if (match := BASE.fullmatch(link))]
    assert [path for path in own if not (ROOT / path).exists()] == []


def test_a_package_names_its_project(package: Package) -> None:
    """Author, licence, tested platforms and addresses, the same in every package."""
    project = package.project
    assert project["authors"] == [{"name": "The tracefork authors"}]
    assert set(project["urls"]) == {"Homepage", "Documentation", "Changelog", "Issues"}
    assert (ROOT / BASE.fullmatch(project["urls"]["Changelog"])[1]).is_file()  # type: ignore[index]
    minors = [c[-4:] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert minors == ["3.11", "3.12", "3.13"]

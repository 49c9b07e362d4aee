"""The page of limits is true: its words are those of the program, and its tests are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "limits.md"
_FOLDERS = {
    "docs": ROOT / "tests" / "docs",
    "langgraph": ROOT / "packages" / "tracefork-langgraph" / "tests",
    "crewai": ROOT / "packages" / "tracefork-crewai" / "tests",
}
_CORE = ROOT / "shared" / "tracefork-core" / "tests"
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
_QUOTED = re.compile("“(.+?)”")


def rows() -> list[list[str]]:
    """Return the cells of each limit; the names of its parts are bold, and left out."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    found = [[cell.strip() for cell in line.split(" | ")] for line in lines]
    return [cells for cells in found if not cells[0].startswith("| **")]


@cache
def words_of_the_program() -> str:
    """Return every text in the sources but docstrings, those of f-strings in pieces."""
    sources = [*ROOT.glob("shared/*/src/**/*.py"), *ROOT.glob("packages/*/src/**/*.py")]
    return "\n".join(text for file in sources for text in texts(ast.parse(file.read_text())))


def texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module."""
    nodes = list(ast.walk(tree))
    documents = {node.value for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and node not in documents and isinstance(node.value, str):
            yield node.value


def test_each_limit_says_all_five_things() -> None:
    """What, what happens, how it shows, what to do, and which test: no row is short of one."""
    assert len(rows()) > 50
    assert [cells for cells in rows() if len(cells) != 5 or not all(cells)] == []


def test_the_tests_it_names_are_there() -> None:
    """Each is a function of the file that is named."""
    named = _TEST.findall(PAGE.read_text())
    assert len(named) > 30
    for path, name in named:
        adapter, _, rest = path.partition("/")
        file = _FOLDERS.get(adapter, _CORE / adapter) / rest
        assert re.search(rf"def {name}\(", file.read_text()), f"{file} has no {name}"


def test_what_it_quotes_is_what_is_said() -> None:
    """Each quoted message is in the sources, word by word between what differs."""
    quoted = [words for cells in rows() for words in _QUOTED.findall(" ".join(cells))]
    assert len(quoted) > 25
    for words in quoted:
        pieces = filter(None, (piece.strip() for piece in words.split("…")))
        unsaid = [piece for piece in pieces if piece not in words_of_the_program()]
        assert not unsaid, f"nobody says {unsaid} ({words!r})"


def test_what_nobody_says_would_be_found() -> None:
    """The control: other words than those of the program are not in it."""
    assert "no seam: counted while recording, allowed at replay" not in words_of_the_program()


def test_every_silent_limit_says_that_it_is() -> None:
    """A limit that shows by nothing that is named here says *silently*."""
    telling = re.compile(
        "“|silently|diverges|Error|Warning|_misses|reordered|as above|as there|verdict|receipt"
        "|verify|inert"
    )
    assert [cells[0] for cells in rows() if not telling.search(cells[2])] == []

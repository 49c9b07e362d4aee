"""The map is true: what ARCHITECTURE.md names is there, under that name, in that order."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib import import_module
from pathlib import Path

from tracefork_core.cli.command_table import SUMMARIES

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "shared/tracefork-core/src/tracefork_core"
MAP = (ROOT / "ARCHITECTURE.md").read_text()
CODE = re.compile(r"`([^`\s]+)`")
LINK = re.compile(r"\]\(([^)#]+)")


def cells(text: str, heading: str) -> list[list[str]]:
    """Return what is in the rows of the table below a heading: of each cell its code."""
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[", ".join(CODE.findall(cell)) for cell in row.split("|")[1:-1]] for row in rows]


def paths_in(text: str) -> list[str]:
    """Return the paths that a text names, but for those that are yet to be made."""
    found = [*CODE.findall(text), *LINK.findall(text)]
    return [
        path for path in found if ("/" in path or path.endswith((".py", ".md"))) and is_made(path)
    ]


def is_made(path: str) -> bool:
    return not re.search(r"[<…()]", path) and not path.startswith("http")


def missing(paths: list[str]) -> list[str]:
    return [path for path in paths if not ((ROOT / path).exists() or (CORE / path).exists())]


def has(file: Path, name: str) -> bool:
    """Return whether a file defines a name, or a member of a class as "Class.member"."""
    body: list[ast.stmt] = ast.parse(file.read_text()).body
    for part in name.split("."):
        defined = {one for node in body for one in names_of(node)}
        if part not in defined:
            return False
        body = next((node.body for node in body if getattr(node, "name", None) == part), [])  # type: ignore[attr-defined]
    return True


def names_of(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name] if isinstance(name := getattr(node, "name", None), str) else []


def said_by(room: Path) -> list[str]:
    """Return the files and folders that a room names below the line that says what it is."""
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    words = CODE.findall(text.partition("\n")[2])
    return [word for word in words if word.islower() and "." not in word]


def names(said: list[str], file: str) -> bool:
    """Return whether one of these words is the name of a file, or a pattern of it with "…"."""
    patterns = [re.escape(word).replace("…", ".+") for word in said]
    return any(re.fullmatch(pattern, file) for pattern in patterns)


def layers() -> list[list[str]]:
    """Return the order of rooms that the import-linter holds."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = [one for one in config["contracts"] if one["type"] == "layers"]
    return [layer.split(" | ") for layer in contract["layers"]]


def test_every_path_on_the_map_is_there() -> None:
    """Files and folders, in the text, in tables and behind links; a wrong one is found."""
    paths = paths_in(MAP)
    assert len(paths) > 60
    assert missing(paths) == []
    assert missing(paths_in("`session/nowhere.py`, `seams/<library>.py`")) == ["session/nowhere.py"]


def test_the_rooms_are_those_of_the_linter_in_its_order() -> None:
    """The table, and what the package says about itself, name each room once, from the top."""
    assert [row[0].split(", ") for row in cells(MAP, "The rooms of core")] == layers()
    said = ast.get_docstring(ast.parse((CORE / "__init__.py").read_text())) or ""
    rooms = [line.split("  ")[2:3] for line in said.splitlines() if re.match(r"    \S", line)]
    assert [room.split(" | ") for (room,) in rooms] == layers()


def test_each_question_is_answered_where_the_map_says() -> None:
    """Twenty questions, each with a file and the name in it; a name that moved is found."""
    questions = cells(MAP, "Twenty questions")
    assert len(questions) == 20
    gone = [f"{file}: {name}" for _, file, name in questions if not has(CORE / file, name)]
    assert gone == []
    assert not has(CORE / "session/session.py", "Session.nowhere")


def test_each_room_names_its_files() -> None:
    """What a room says of itself is its map: no file without a word, no word without a file."""
    for room in sorted(path.parent for path in CORE.glob("*/__init__.py")):
        said = said_by(room)
        files = {path.stem for path in room.glob("[!_]*")}
        known = SUMMARIES.keys() if room.name == "cli" else ()
        unsaid = {file for file in files.difference(known) if not names(said, file)}
        public = getattr(import_module(f"tracefork_core.{room.name}"), "__all__", ())
        others = set(said).difference(public)
        nowhere = {word for word in others if not any(names([word], file) for file in files)}
        assert (room.name, unsaid, nowhere) == (room.name, set(), set())
    assert not names(said_by(CORE / "tape"), "nowhere")


def test_the_map_is_short_enough_to_be_read() -> None:
    """Two hundred lines at most."""
    assert len(MAP.splitlines()) <= 200

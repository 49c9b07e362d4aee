"""A project folder is an agent if an adapter knows what its framework would run in it."""

from __future__ import annotations

import pytest

from .conftest import Shell

ADAPTER = """\
from tracefork_core.adapters import Project

def find(folder):
    if (folder / "desk.toml").is_file():
        environment = {"PLACE": (folder / "desk.toml").read_text()}
        return Project("desk.main:run", folder, (folder / "src",), environment)
"""
MAIN = """\
import os, sys
from threading import Thread
import httpx2

def run():
    words = [os.environ["PLACE"], os.path.basename(os.getcwd()), *sys.argv[1:]]
    answer = httpx2.get(os.environ["PROVIDER"] + "/echo/" + "-".join(words)).request.url.path
    said = answer.removeprefix("/echo/").replace("-", " ")
    if "returned" in words:
        return said
    Thread(target=lambda: print(said)).start()
"""

GRADED = """\
from pathlib import Path
from tracefork_core.cli.agent.agent import Agent
from tracefork_core.cli.agent.callable_agent import Program

here = Path.cwd()
for words in (("returned",), ()):
    print(repr(Program(Agent("project", "office", words), here)()))
"""


@pytest.fixture
def desk(shell: Shell) -> Shell:
    """Return a shell in a folder with a project, with the adapter of its framework installed."""
    shell.write("site/desk_adapter.py", ADAPTER)
    shell.write("site/desk_adapter-1.0.dist-info/METADATA", "Name: desk-adapter\nVersion: 1.0\n")
    points = "[tracefork.projects]\ngone = gone:find\ndesk = desk_adapter:find\n"
    shell.write("site/desk_adapter-1.0.dist-info/entry_points.txt", points)
    shell.write("office/desk.toml", "upstairs")
    shell.write("office/src/desk/main.py", MAIN)
    shell.environment["PYTHONPATH"] = f"{shell.folder / 'site'}:{shell.python_path}"
    return shell


def test_a_project_is_recorded_and_replayed(desk: Shell) -> None:
    """It runs in its folder with its variables, and replays from another folder."""
    done = desk.tracefork("record", "office", "--", "now")
    assert (done.exit, done.out) == (0, "upstairs office now\n"), done.err
    assert "next: tracefork replay office.tape office -- now" in done.err
    again = desk.at(desk.folder / "office").tracefork("replay", "office")
    assert (again.exit, again.out) == (0, done.out), again.err
    assert "as recorded: office -- now" in again.err
    other = desk.tracefork("replay", "office.tape", "office", "--", "then")
    assert (other.exit, "diverged" in other.err) == (1, True)


def test_a_folder_that_no_adapter_recognizes_is_refused(desk: Shell) -> None:
    """The error names the adapters, broken ones too, and a remedy."""
    (desk.folder / "office/desk.toml").unlink()
    done = desk.tracefork("record", "office")
    words = " ".join(done.err.split())
    assert done.exit == 2
    assert "the adapter for gone is broken: ModuleNotFoundError" in words
    assert "the adapter for desk does not" in words
    assert "--agent PKG.MOD:FN" in words


def test_a_project_is_graded_by_what_it_returns_or_prints(desk: Shell) -> None:
    """`blame` and `bisect` use its function's result, or else its output."""
    done = desk.python("-c", GRADED)
    assert done.out.splitlines() == [
        "'upstairs office returned'",
        "Ended(status=0, output='upstairs office\\n')",
    ], done.err

"""The types of a script are recognized whether it is run or imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.many_processes

_SCRIPT = """
import sys
from dataclasses import dataclass
from typing import TypedDict
from langgraph.graph import START, StateGraph
from tracefork_langgraph import TapeSaver, attach


@dataclass
class Doc:
    name: str


class State(TypedDict, total=False):
    doc: Doc


thread = {"configurable": {"thread_id": "t"}}
builder = StateGraph(State).add_node("a", lambda _: {"doc": Doc("paper")}).add_edge(START, "a")
graph = attach(builder.compile(checkpointer=TapeSaver("threads.tape")))


def main(what):
    if what == "put":
        graph.invoke({}, thread)
    print(graph.get_state(thread).values["doc"] == Doc("paper"))


if __name__ == "__main__":
    main(sys.argv[1])
"""
_RUN = ("desk.py",)
_IMPORTED = ("-c", "import sys, desk; desk.main(sys.argv[1])")


def _ran(folder: Path, how: tuple[str, ...], what: str) -> tuple[str, str]:
    command = [sys.executable, *how, what]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


@pytest.mark.parametrize(("first", "then"), [(_RUN, _IMPORTED), (_IMPORTED, _RUN)])
def test_type_of_a_script_is_found_if_run_or_imported(
    first: tuple[str, ...], then: tuple[str, ...], tmp_path: Path
) -> None:
    """A run of `python desk.py` can be blamed with `--agent desk:again`."""
    (tmp_path / "desk.py").write_text(_SCRIPT)
    for how, what in ((first, "put"), (then, "look")):
        said, errors = _ran(tmp_path, how, what)
        assert said == "True\n", errors


def test_type_with_the_same_name_of_another_script_is_refused(tmp_path: Path) -> None:
    """The module has to match too."""
    for name in ("desk.py", "other.py"):
        (tmp_path / name).write_text(_SCRIPT)
    assert _ran(tmp_path, _IMPORTED, "put")[0] == "True\n"
    said, errors = _ran(tmp_path, ("other.py",), "look")
    assert (said, "not allowed here: desk.Doc" in errors) == ("", True)

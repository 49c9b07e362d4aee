"""A module that is compiled with a look at it between its statements runs as it would without."""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

import pytest

from tracefork_core.patching.module_body import bound_in, call_after_statements, compiled


def code(text: str) -> CodeType:
    return compiled(ast.parse(text), "agent.py")


class Module:
    """Runs a module; notes the names that it had at each look."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.looks: list[set[str]] = []

    def run(self, text: str) -> None:
        self.names.clear()
        undo = call_after_statements(lambda: self.looks.append(set(self.names) - {"__builtins__"}))
        try:
            exec(code(text), self.names)
        finally:
            undo()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a = 1\nb = 2", [{"a"}, {"a", "b"}]),
        ("def a(): pass\nclass B: pass", [{"a"}, {"a", "B"}]),
        ("if True:\n    a = 1\nelse:\n    b = 2", [{"a"}, {"a"}]),
        ("try:\n    raise KeyError\nexcept KeyError:\n    a = 1", [{"a"}, {"a"}]),
        ("try:\n    a = 1\nfinally:\n    b = 2", [{"a"}, {"a", "b"}, {"a", "b"}]),
        (
            "import contextlib as c\nwith c.nullcontext():\n    a = 1",
            [{"c"}, {"c", "a"}, {"c", "a"}],
        ),
        ("for a in range(9):\n    b = a", [{"a", "b"}]),
        ("while True:\n    a = 1\n    break", [{"a"}]),
        ("pass", []),
    ],
)
def test_the_hook_runs_after_each_statement_that_may_bind_a_name(
    text: str, seen: list[set[str]]
) -> None:
    """Inside blocks that run once, too, and after a loop, not within it."""
    module = Module()
    module.run(text)
    assert module.looks == seen


def test_docstring_future_imports_and_lines_stay() -> None:
    """What Python wants at the top of a module is still at the top."""
    module = Module()
    module.run('"""Says."""\nfrom __future__ import annotations\n\ndef f(x: nothing): pass\n')
    names = dict(module.names)
    assert names["__doc__"] == "Says."
    assert names["f"].__annotations__ == {"x": "nothing"}
    assert names["f"].__code__.co_firstlineno == 4
    with pytest.raises(ZeroDivisionError) as caught:
        module.run("a = 1\n\n1 / 0\n")
    assert caught.traceback[-1].lineno == 2  # Counted from 0.


def test_a_module_that_runs_on_after_the_undoing_calls_nothing() -> None:
    """In another thread, say; the hook of a later session is not called by an earlier undoing."""
    calls: list[str] = []
    module = code("a = 1")
    undo = call_after_statements(lambda: calls.append("first"))
    undo_second = call_after_statements(lambda: calls.append("second"))
    undo()
    exec(module, {})
    undo_second()
    exec(module, {})
    assert calls == ["second"]


BODY = """
import os.path as p, json.decoder
from x import y as z
CONSTANT = [inner for inner in ()]
def f():
    global made
    def nested(): pass
class Plain:
    member = 1
    def method(self): pass
class Derived(Plain): pass
match CONSTANT:
    case [first, *rest]: pass
"""


def test_the_source_tells_which_names_a_module_binds() -> None:
    """Functions, methods, what is nested, and what nothing binds."""
    bound = bound_in(ast.parse(BODY))
    expected = {"p", "json", "z", "CONSTANT", "f", "made", "Plain", "Derived", "first", "rest"}
    assert expected <= bound.names
    assert "nested" not in bound.names
    assert bound.functions == {"f", "Plain.method"}
    assert bound.inside == {"nested"}
    for path, may_be_there in {
        "f": True,
        "Plain.method": True,
        "Plain.absent": False,
        "Derived.absent": True,
        "absent": False,
    }.items():
        assert bound.may_have(path) is may_be_there, path


@pytest.mark.parametrize(
    "text",
    ["from x import *", "globals()['a'] = 1", "def __getattr__(name): pass", "exec('a = 1')"],
)
def test_a_module_that_makes_names_as_it_runs_may_have_any(text: str) -> None:
    """A name that the source does not have is not refused then."""
    bound = bound_in(ast.parse(text))
    assert bound.is_dynamic
    assert bound.may_have("anything")

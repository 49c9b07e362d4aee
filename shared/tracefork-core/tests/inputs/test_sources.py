"""The card names the functions of a changed module that are not what they were."""

from __future__ import annotations

import pytest

from tracefork_core.inputs.sources import changed_functions, functions_of

MODULE = b"""\
import os

def plan(goal):
    return goal

class Desk:
    @staticmethod
    def send(mail):
        return mail

LIMIT = 3
"""


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (b"return goal", b"return goal + '!'", "plan() was edited"),
        (b"@staticmethod\n    ", b"", "Desk.send() was edited"),
        (b"def plan(goal):\n    return goal\n", b"", "plan() is gone"),
        (b"LIMIT = 3", b"LIMIT = 4", "its top-level code was edited"),
        (b"\nLIMIT", b"\n\n\nLIMIT", ""),
        (b"def plan", b"def (plan", ""),
    ],
)
def test_a_changed_function_is_named(before: bytes, after: bytes, words: str) -> None:
    """An empty line changes none of them, and of a module that is no Python nothing is known."""
    assert before in MODULE
    changed = MODULE.replace(before, after)
    assert changed_functions(functions_of(MODULE), functions_of(changed)) == words


def test_few_of_many_functions_are_named() -> None:
    """The card has to be read."""
    many = b"".join(b"def f%d(): pass\n" % n for n in range(9))
    words = changed_functions(functions_of(many), functions_of(b"def f0(): pass\n"))
    assert words == "f1() is gone, f2() is gone, f3() is gone, f4() is gone, 4 more"

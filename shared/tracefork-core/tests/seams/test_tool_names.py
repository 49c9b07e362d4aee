"""Names of tools that a session refuses: mistakes, functions that are none, hostile tapes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tracefork_core import TapeError, UsageError, record, replay

from ..conftest import Alter


def test_a_name_that_does_not_exist_is_refused_before_there_is_a_tape(
    tape: Path, shop: Callable[[], ModuleType]
) -> None:
    """The error says what the module has that comes close."""
    shop()
    for name, close in [("shop:plian", "shop:plain"), ("shop:pay_", "shop:pay"), ("shp:a", "shp")]:
        with pytest.raises(UsageError, match=close), record(tape, tools=[name]):
            pass
        assert not tape.exists()
    with pytest.raises(UsageError, match=r"shop:Bank\.pay"), record(tape, tools=["shop:Bank"]):
        pass
    with pytest.raises(UsageError, match="tool shop:plain"), record(tape, tools_of=["shop:plain"]):
        pass
    with pytest.raises(UsageError, match="tool-of shop:TABLE"), record(tape, tools=["shop:TABLE"]):
        pass


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("plain", "MODULE:NAME"),
        ("shop.py:plain", "Type shop:plain"),
        ("shop:plain=none", "read, write, pure"),
        ("os:remove", "Python itself"),
    ],
)
def test_a_text_that_names_no_tool_is_refused(name: str, fact: str, tape: Path) -> None:
    """A file, a wrong effect, and functions of Python's own library."""
    with pytest.raises(UsageError, match=fact):
        record(tape, tools=[name])


def test_a_function_without_a_name_is_refused(tape: Path) -> None:
    """A replay could not find it again."""
    with pytest.raises(UsageError, match="inside a function"):
        record(tape, tools=[lambda what: what])


def test_a_name_that_proves_wrong_at_import_ends_the_run(
    tape: Path, shop: Callable[[], ModuleType]
) -> None:
    """The import raises it, and the block once more."""
    with pytest.raises(UsageError, match="shop:plain"), record(tape, tools=["shop:plian"]):
        with pytest.raises(UsageError):
            shop()


@pytest.mark.parametrize("name", ["os:unlink", "tracefork_core:tool", "shop", "x:a=b"])
def test_a_tape_cannot_name_anything_else(
    name: str, tape: Path, shop: Callable[[], ModuleType], alter: Alter
) -> None:
    """Functions of Python and of tracefork, and texts that no recording writes."""
    with record(tape, tools=["shop:plain"]):
        shop().plain("a")
    alter(tape, events=lambda line: line.replace(b'"shop:plain"', f'"{name}"'.encode()))
    with pytest.raises(TapeError, match="corrupt"), replay(tape):
        shop().plain("a")


def test_a_tape_imports_no_module_that_it_names(
    tape: Path, shop: Callable[[], ModuleType], tmp_path: Path, alter: Alter
) -> None:
    """Its finder waits for the agent to import it."""
    (tmp_path / "other.py").write_text("raise SystemExit('imported')")
    with record(tape, tools=["shop:plain"]):
        pass
    alter(tape, events=lambda line: line.replace(b'"shop:plain"', b'"other:plain"'))
    with replay(tape):
        pass
    assert "other" not in sys.modules

"""Name the file of a tape after its test, or after its fixture.

The tape of `test_refund[euro]` in `tests/test_desk.py` is
`tests/tapes/test_desk/test_refund[euro].tape`. A fixture of that module has its tape in the same
folder; one of a `conftest.py` in `tapes/conftest/`.
"""

from __future__ import annotations

import inspect
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tracefork_core.pytest_plugin.plugin import FOLDER

SUFFIX = ".tape"
_FIXTURE = ".fixture"
_ODD = re.compile(r"[^\w.\-\[\]=,+@ ]")
_LONGEST = 100
"""Bytes of a name; file systems allow 255, and a recording adds to it while it is made."""
_OF_CLASSES = re.compile(r"^_(?:xunit|unittest)_(\w+?)_fixture_.*$")


def tape_of_test(item: pytest.Item) -> Path:
    """Return the path of the tape of a test."""
    classes = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    return folder_of(item.path) / file_name(".".join([*classes, item.name]))


def tape_of_fixture(definition: Any, request: Any) -> Path:
    """Return the path of the tape of a fixture that several tests share.

    It is beside the tapes of its module if it belongs to one, else with its `conftest.py`.
    """
    node, name = request.node, name_of_fixture(definition)
    if hasattr(request, "param"):
        name += f"[{_text_of(request)}]"
    if isinstance(node, pytest.Class):
        name = f"{node.name}.{name}"
    is_of_module = isinstance(node, pytest.Class | pytest.Module)
    where = node.path if is_of_module else Path(inspect.getfile(inspect.unwrap(definition.func)))
    return folder_of(where) / file_name(f"{name}{_FIXTURE}")


def fixture_of(tape: Path) -> str | None:
    """Return the name of the fixture that a tape is named after, or None."""
    name, found, _ = tape.name.partition(_FIXTURE)
    return name.partition("[")[0].rpartition(".")[2] if found else None


def name_of_fixture(definition: Any) -> str:
    """Return the name of a fixture, or of the function that pytest made it of: `setUpClass`."""
    name: str = definition.argname
    match = _OF_CLASSES.match(name)
    return match[1] if match else name


def folder_of(module: Path) -> Path:
    """Return the folder of the tapes of a module of tests."""
    return module.parent / FOLDER / module.stem


def file_name(name: str) -> str:
    """Return the name of a file for a test of any name, different for different tests."""
    plain = _ODD.sub("_", name)
    if plain == name and len(name.encode()) <= _LONGEST:
        return name + SUFFIX
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    kept = plain.encode("utf-8", "replace")[: _LONGEST - 9].decode("utf-8", "ignore")
    return f"{kept}-{digest}{SUFFIX}"


def _text_of(request: Any) -> str:
    """Return a text for the parameter of a fixture, the same in each run."""
    value = request.param
    return str(value) if isinstance(value, str | int | float | None) else str(request.param_index)

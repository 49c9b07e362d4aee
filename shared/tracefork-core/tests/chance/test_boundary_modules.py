"""Functions of native libraries are watched wherever they were imported."""

from __future__ import annotations

import importlib
import importlib.util
import ssl
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from tracefork_core import record

# In place of the Rust extension of that name, whose functions cannot be told from these.
STAND_IN = """
import uuid
def uuid4(): return uuid.UUID(int=7)
def uuid7(): return uuid.UUID(int=8)
"""
COUNTED = """
from uuid_utils import uuid4
def fresh(): return uuid4()
"""


@pytest.fixture
def uuid_utils(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put a module of this name on the path, and unload it at the end."""
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "uuid_utils.py").write_text(STAND_IN)
    (package / "counted.py").write_text(COUNTED)
    monkeypatch.syspath_prepend(str(package))
    names = ("uuid_utils", "counted")
    held: dict[str, ModuleType] = {n: sys.modules.pop(n) for n in names if n in sys.modules}
    yield package
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(held)


def load() -> ModuleType:
    return importlib.import_module("uuid_utils")


def lazily(spec: ModuleSpec | None) -> ModuleType:
    """Return a module that loads on the first access to an attribute."""
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_module_imported_inside_the_session_is_watched(tape: Path, uuid_utils: Path) -> None:
    """Its functions are wrapped as soon as it is loaded."""
    with record(tape, boundary="note") as run:
        assert "uuid_utils" not in sys.modules, "the guard imported it"
        drawn = load().uuid4()
    assert str(drawn).endswith("7")
    (leak,) = run.leaks
    assert ": uuid_utils.uuid4() " in leak


def test_the_guard_leaves_nothing_behind(tape: Path, uuid_utils: Path) -> None:
    """The module has its own functions and loader again, and no finder is left."""
    finders = list(sys.meta_path)
    before = load()
    plain = before.uuid4
    with record(tape, boundary="note"):
        assert before.uuid4 is not plain
    assert before.uuid4 is plain
    del sys.modules["uuid_utils"]
    with record(tape, overwrite=True, boundary="note"):
        after = load()
    assert after.uuid4.__module__ == "uuid_utils"
    assert not hasattr(after.uuid4, "__wrapped__")
    assert type(after.__loader__) is type(before.__loader__)
    assert sys.meta_path == finders


def test_a_guard_does_not_load_a_lazy_module(tape: Path, tmp_path: Path) -> None:
    """It looks names up without an attribute access."""
    (tmp_path / "lazy_two.py").write_text("raise AssertionError('loaded')\n")
    spec = importlib.util.spec_from_file_location("lazy_two", tmp_path / "lazy_two.py")
    module = sys.modules["lazy_two"] = lazily(spec)
    try:
        with record(tape, boundary="note"):
            ssl.RAND_bytes(1)
    finally:
        del sys.modules["lazy_two"]
    with pytest.raises(AssertionError, match="loaded"):
        _ = module.anything


def test_a_lazy_module_is_watched_once_it_loads(tape: Path, uuid_utils: Path) -> None:
    """Unless the session is over by then."""
    with record(tape, boundary="note") as run:
        module = sys.modules["uuid_utils"] = lazily(importlib.util.find_spec("uuid_utils"))
        module.uuid4()
    assert len(run.leaks) == 1
    del sys.modules["uuid_utils"]
    with record(tape, overwrite=True, boundary="note"):
        module = sys.modules["uuid_utils"] = lazily(importlib.util.find_spec("uuid_utils"))
    assert not hasattr(module.uuid4, "__wrapped__")


def test_a_library_that_draws_for_itself_is_not_reported(tape: Path, uuid_utils: Path) -> None:
    """The control: the same function, called by a library for itself."""
    with record(tape, boundary="note") as run:
        importlib.import_module("counted").fresh()
    assert run.leaks == []

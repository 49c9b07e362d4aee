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
def uuid_v1mc(): return uuid.UUID(int=7)
def uuid7(): return uuid.UUID(int=8)
"""
COUNTED = """
from fastuuid import uuid_v1mc
def fresh(): return uuid_v1mc()
"""


@pytest.fixture
def fastuuid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put a module of this name on the path, and unload it at the end."""
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "fastuuid.py").write_text(STAND_IN)
    (package / "counted.py").write_text(COUNTED)
    monkeypatch.syspath_prepend(str(package))
    names = ("fastuuid", "counted")
    held: dict[str, ModuleType] = {n: sys.modules.pop(n) for n in names if n in sys.modules}
    yield package
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(held)


def load() -> ModuleType:
    return importlib.import_module("fastuuid")


def lazily(spec: ModuleSpec | None) -> ModuleType:
    """Return a module that loads on the first access to an attribute."""
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_module_imported_inside_the_session_is_watched(tape: Path, fastuuid: Path) -> None:
    """Its functions are wrapped as soon as it is loaded."""
    with record(tape, boundary="note") as run:
        assert "fastuuid" not in sys.modules, "the guard imported it"
        drawn = load().uuid_v1mc()
    assert str(drawn).endswith("7")
    (leak,) = run.leaks
    assert ": fastuuid.uuid_v1mc() " in leak


def test_the_guard_leaves_nothing_behind(tape: Path, fastuuid: Path) -> None:
    """The module has its own functions and loader again, and no finder is left."""
    finders = list(sys.meta_path)
    before = load()
    plain = before.uuid_v1mc
    with record(tape, boundary="note"):
        assert before.uuid_v1mc is not plain
    assert before.uuid_v1mc is plain
    del sys.modules["fastuuid"]
    with record(tape, overwrite=True, boundary="note"):
        after = load()
    assert after.uuid_v1mc.__module__ == "fastuuid"
    assert not hasattr(after.uuid_v1mc, "__wrapped__")
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


def test_a_lazy_module_is_watched_once_it_loads(tape: Path, fastuuid: Path) -> None:
    """Unless the session is over by then."""
    with record(tape, boundary="note") as run:
        module = sys.modules["fastuuid"] = lazily(importlib.util.find_spec("fastuuid"))
        module.uuid_v1mc()
    assert len(run.leaks) == 1
    del sys.modules["fastuuid"]
    with record(tape, overwrite=True, boundary="note"):
        module = sys.modules["fastuuid"] = lazily(importlib.util.find_spec("fastuuid"))
    assert not hasattr(module.uuid_v1mc, "__wrapped__")


def test_a_library_that_draws_for_itself_is_not_reported(tape: Path, fastuuid: Path) -> None:
    """The control: the same function, called by a library for itself."""
    with record(tape, boundary="note") as run:
        importlib.import_module("counted").fresh()
    assert run.leaks == []

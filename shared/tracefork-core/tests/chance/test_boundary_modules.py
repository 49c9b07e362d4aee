"""Functions of native libraries are watched wherever they come from, and nothing is imported."""

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
    """Put a module of the name on the path, and take it out of the process at the end."""
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
    """Return a module that loads when something of it is asked for."""
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_module_that_is_loaded_in_the_session_is_watched(tape: Path, uuid_utils: Path) -> None:
    """An agent imports while it runs: its functions are wrapped as soon as they are there."""
    with record(tape, boundary="note") as run:
        assert "uuid_utils" not in sys.modules, "the guard imported it"
        drawn = load().uuid4()
    assert str(drawn).endswith("7")
    (leak,) = run.leaks
    assert "uuid_utils.uuid4() draws in native code, which is not on the tape" in leak
    assert leak.endswith("Use uuid.uuid4(), or run.nondet.uuid().")


def test_nothing_of_the_guard_stays_behind(tape: Path, uuid_utils: Path) -> None:
    """After the run the module has its own functions and loader, and no finder is left."""
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


def test_a_lazy_module_is_not_loaded_by_a_guard(tape: Path, tmp_path: Path) -> None:
    """Names are looked up in modules as they are, also in one that waits to be used."""
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


def test_a_module_that_waits_to_be_used_is_watched_from_then_on(
    tape: Path, uuid_utils: Path
) -> None:
    """Imported lazily, its functions are wrapped when it loads, unless the session is over."""
    with record(tape, boundary="note") as run:
        module = sys.modules["uuid_utils"] = lazily(importlib.util.find_spec("uuid_utils"))
        module.uuid4()
    assert len(run.leaks) == 1
    del sys.modules["uuid_utils"]
    with record(tape, overwrite=True, boundary="note"):
        module = sys.modules["uuid_utils"] = lazily(importlib.util.find_spec("uuid_utils"))
    assert not hasattr(module.uuid4, "__wrapped__")


def test_a_library_that_draws_for_itself_is_not_named(tape: Path, uuid_utils: Path) -> None:
    """The control: the same function, called by a library that is not about such values."""
    with record(tape, boundary="note") as run:
        importlib.import_module("counted").fresh()
    assert run.leaks == []

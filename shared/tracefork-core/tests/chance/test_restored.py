"""After a session nothing of the process is patched any more."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import tempfile
import types
import uuid
from collections.abc import Iterator
from os import urandom
from pathlib import Path
from random import random as luck
from uuid import uuid1

import pytest

from tracefork_core import record, replay

REAL = [os.urandom]
"""Held where no name is rebound."""


def touched() -> dict[str, object]:
    """Return everything that entropy patches, by name."""
    found: dict[str, object] = {
        f"os.{name}": getattr(os, name) for name in ("urandom", "getrandom") if hasattr(os, name)
    }
    for name, names in (
        ("random", vars(random)),
        ("random.Random", vars(random.Random)),
        ("uuid", vars(uuid)),
    ):
        found |= {f"{name}.{key}": held for key, held in names.items() if key != "__builtins__"}
    found["random._inst"] = type(random._inst)
    found["tempfile"] = vars(tempfile._RandomNameSequence)["rng"]  # type: ignore[attr-defined]
    return found | {"urandom": urandom, "random": luck, "uuid1": uuid1}


def changed(before: dict[str, object], after: dict[str, object]) -> list[str]:
    """Return the names that refer to another object."""
    names = sorted(before.keys() | after.keys())
    return [name for name in names if before.get(name) is not after.get(name)]


def test_everything_patched_is_restored_to_the_identical_object(tape: Path) -> None:
    """After a recording, a replay, nested sessions and an error."""
    before, finders = touched(), list(sys.meta_path)
    with record(tape), record(tape.with_name("inner.tape")):
        uuid.uuid4()
        inside = touched()
    with replay(tape):
        pass
    with pytest.raises(ZeroDivisionError), record(tape, overwrite=True):
        raise ZeroDivisionError
    after = touched()
    assert changed(before, after) == []
    assert sys.meta_path == finders
    # Negative control: inside, the comparison sees a difference.
    assert len(changed(before, inside)) > 10


def test_functions_kept_from_a_session_are_real_afterwards(tape: Path) -> None:
    """Bound methods, too: they give new values, not those of the tape."""
    with record(tape):
        kept = os.urandom, uuid.uuid1, random.random, random.getrandbits
        drawn = kept[0](8), kept[1](), kept[2](), kept[3](64)
    fresh = kept[0](8), kept[1](), kept[2](), kept[3](64)
    assert not set(drawn) & set(fresh)
    state = random.getstate()
    value = kept[2]()
    random.setstate(state)
    assert random.random() == value


def test_a_module_loaded_inside_gets_the_real_functions_back(tape: Path) -> None:
    """`from os import urandom` in a session imports a stand-in, for as long as that lasts."""
    module = types.ModuleType("loaded_inside")
    with record(tape):
        exec("from os import urandom\nfrom random import random", vars(module))
        sys.modules["loaded_inside"] = module
        first = module.urandom(8), module.random()
        assert module.urandom is not REAL[0]
    assert module.urandom is REAL[0]
    assert module.random is random.random
    with replay(tape):
        assert module.urandom is not REAL[0]
        assert (module.urandom(8), module.random()) == first
    del sys.modules["loaded_inside"]


@pytest.fixture
def _afterwards_it_is_real() -> Iterator[None]:
    yield
    os.urandom = REAL[0]  # What a test replaced in a block was a stand-in.


@pytest.mark.usefixtures("_afterwards_it_is_real")
def test_a_patch_of_the_program_stays(tape: Path) -> None:
    """A function that the program patched, before or in the block, is left alone."""

    def fixed(size: int) -> bytes:
        return bytes(size)

    with record(tape):
        os.urandom = fixed
        assert uuid.uuid4().hex.strip("048") == ""
    assert os.urandom is fixed
    with replay(tape):
        assert os.urandom is fixed
    assert os.urandom is fixed


def test_looking_for_names_does_not_load_a_lazy_module(tape: Path, tmp_path: Path) -> None:
    """Objects in `sys.modules` that only pretend to be modules are left alone, too."""
    (tmp_path / "lazy_one.py").write_text("raise AssertionError('loaded')\n")
    spec = importlib.util.spec_from_file_location("lazy_one", tmp_path / "lazy_one.py")
    assert spec is not None
    assert spec.loader is not None
    loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["lazy_one"], sys.modules["no_module"] = module, Pretending()  # type: ignore[assignment]
    loader.exec_module(module)
    with record(tape):
        os.urandom(1)
    del sys.modules["lazy_one"], sys.modules["no_module"]
    with pytest.raises(AssertionError, match="loaded"):
        _ = module.anything


class Pretending:
    """An object such as cffi puts into `sys.modules`."""

    __slots__ = ()
    __class__ = types.ModuleType  # type: ignore[assignment]

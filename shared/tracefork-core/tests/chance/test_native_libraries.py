"""Ids and bytes that are made in Rust and C are named by the guard: the real libraries."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import fastuuid
import nacl.utils
import pytest
import uuid_utils
import uuid_utils.compat

from tracefork_core import record

NATIVE: list[tuple[ModuleType, str, tuple[object, ...]]] = [
    (uuid_utils, "uuid1", ()),
    (uuid_utils, "uuid4", ()),
    (uuid_utils, "uuid6", ()),
    (uuid_utils, "uuid7", ()),
    (uuid_utils.compat, "uuid4", ()),
    (uuid_utils.compat, "uuid7", ()),
    (fastuuid, "uuid4", ()),
    (fastuuid, "uuid7", ()),
    (fastuuid, "uuid4_bulk", (2,)),
    (nacl.utils, "random", (8,)),
]


@pytest.mark.parametrize(("module", "name", "given"), NATIVE)
def test_it_is_named_with_its_line(
    module: ModuleType, name: str, given: tuple[object, ...], tape: Path
) -> None:
    """What no patch of Python reaches is said to be outside, once, at the line that asks."""
    with record(tape, boundary="note") as run:
        getattr(module, name)(*given)
    (leak,) = run.leaks
    assert leak.startswith("test_native_libraries.py:")
    assert name in leak


def test_pythons_own_ids_are_not(tape: Path) -> None:
    """The control: what is on the tape is no leak."""
    import uuid

    with record(tape, boundary="note") as run:
        uuid.uuid4()
    assert run.leaks == []

"""The guard reports ids and bytes that the real libraries in Rust and C make."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import fastuuid
import nacl.utils
import pytest
import uuid_utils
import uuid_utils.compat

from tracefork_core import record, replay

NATIVE: list[tuple[ModuleType, str, tuple[object, ...]]] = [
    (uuid_utils, "uuid1", ()),
    (uuid_utils, "uuid4", ()),
    (uuid_utils, "uuid6", ()),
    (uuid_utils, "uuid7", ()),
    (uuid_utils.compat, "uuid4", ()),
    (uuid_utils.compat, "uuid7", ()),
    (fastuuid, "uuid7", ()),
    (fastuuid, "uuid4_bulk", (2,)),
    (nacl.utils, "random", (8,)),
]


@pytest.mark.parametrize(("module", "name", "given"), NATIVE)
def test_a_native_draw_is_reported_with_its_line(
    module: ModuleType, name: str, given: tuple[object, ...], tape: Path
) -> None:
    """Once, at the line that calls it."""
    with record(tape, boundary="note") as run:
        getattr(module, name)(*given)
    (leak,) = run.leaks
    assert leak.startswith("test_native_libraries.py:")
    assert name in leak


def test_an_id_of_python_is_not_reported(tape: Path) -> None:
    """The control: it is on the tape."""
    import uuid

    with record(tape, boundary="note") as run:
        uuid.uuid4()
    assert run.leaks == []


def test_an_id_of_fastuuid_is_on_the_tape(tape: Path) -> None:
    """LiteLLM sends such ids to models; they are what fastuuid makes, each another one."""
    with record(tape, boundary="note") as run:
        first = [fastuuid.uuid4() for _ in range(3)]
    with replay(tape) as replayed:
        assert [fastuuid.uuid4() for _ in range(3)] == first
    assert (run.leaks, replayed.entropy_misses) == ([], 0)
    assert len({fastuuid.uuid4(), *first}) == 4
    assert {(type(one), one.version) for one in first} == {(fastuuid.UUID, 4)}


def test_an_id_of_fastuuid_is_reported_where_entropy_is_off(tape: Path) -> None:
    """It is not on the tape then."""
    with record(tape, boundary="note", entropy=False) as run:
        fastuuid.uuid4()
    (leak,) = run.leaks
    assert "fastuuid.uuid4" in leak

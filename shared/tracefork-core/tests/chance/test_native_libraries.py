"""Ids of the real libraries in Rust are on the tape; the guard reports what is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import fastuuid
import nacl.utils
import pytest
import uuid_utils
import uuid_utils.compat
from uuid_utils import uuid7

from tracefork_core import record, replay

NATIVE: list[tuple[ModuleType, str, tuple[object, ...]]] = [
    (fastuuid, "uuid_v1mc", ()),
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


IDS: dict[str, Callable[[], Any]] = {
    "uuid_utils.uuid1": lambda: uuid_utils.uuid1(),  # noqa: PLW0108 - looked up when it is called
    "uuid_utils.uuid1, of a host": lambda: uuid_utils.uuid1(node=5),
    "uuid_utils.uuid4": lambda: uuid_utils.uuid4(),  # noqa: PLW0108
    "uuid_utils.uuid6": lambda: uuid_utils.uuid6(),  # noqa: PLW0108
    "uuid_utils.uuid7": lambda: uuid_utils.uuid7(),  # noqa: PLW0108
    "uuid_utils.uuid7, bound early": lambda: uuid7(),  # noqa: PLW0108
    "uuid_utils.compat.uuid1": lambda: uuid_utils.compat.uuid1(),  # noqa: PLW0108
    "uuid_utils.compat.uuid4": lambda: uuid_utils.compat.uuid4(),  # noqa: PLW0108
    "uuid_utils.compat.uuid6": lambda: uuid_utils.compat.uuid6(),  # noqa: PLW0108
    "uuid_utils.compat.uuid7": lambda: uuid_utils.compat.uuid7(),  # noqa: PLW0108
    "fastuuid.uuid4": lambda: fastuuid.uuid4(),  # noqa: PLW0108
    "fastuuid.uuid7": lambda: fastuuid.uuid7(),  # noqa: PLW0108
}


@pytest.mark.parametrize("make", IDS.values(), ids=IDS.keys())
def test_an_id_of_rust_is_on_the_tape(tape: Path, make: Callable[[], Any]) -> None:
    """LangChain and LiteLLM send such ids; each is another one, of the type and version it was."""
    own = make()
    with record(tape, boundary="note") as run:
        first = [make() for _ in range(3)]
    with replay(tape) as replayed:
        assert [make() for _ in range(3)] == first
    assert (run.leaks, replayed.entropy_misses, replayed.clock_misses) == ([], 0, 0)
    assert len({make(), own, *first}) == 5
    assert {(type(one), one.version) for one in first} == {(type(own), own.version)}
    if own.version in (6, 7):
        assert sorted(str(one) for one in first) == [str(one) for one in first]
        assert str(own) < str(first[0]) < str(make()), "the time in it"


def test_an_id_of_a_given_time_keeps_it(tape: Path) -> None:
    """Only the rest of it is drawn. The argument has another name in older versions."""
    ns = "nanoseconds" in str(vars(uuid_utils)["_uuid7_int"].__text_signature__)
    given: dict[str, int] = {"nanoseconds": 5_000_000_000} if ns else {"timestamp": 5, "nanos": 0}
    with record(tape):
        first = uuid_utils.uuid7(**given)
    with replay(tape):
        assert uuid_utils.uuid7(**given) == first
    assert first.int >> 80 == 5_000


def test_an_id_of_rust_is_reported_where_entropy_is_off(tape: Path) -> None:
    """It is not on the tape then."""
    with record(tape, boundary="note", entropy=False) as run:
        fastuuid.uuid4()
        uuid_utils.compat.uuid7()
    first, second = run.leaks
    assert "fastuuid.uuid4" in first
    assert "uuid_utils.compat.uuid7" in second

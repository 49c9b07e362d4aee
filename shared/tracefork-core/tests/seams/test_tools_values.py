"""Results of tools come back equal and of the same class, and a tape chooses no class."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracefork_core import Tape, UsageError, record, replay, tool


class Colour(Enum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


class Point(NamedTuple):
    x: int
    y: float = 0.0


class Owner(msgspec.Struct, frozen=True, rename="camel", tag=True):
    full_name: str
    since: date


class Guest(msgspec.Struct, frozen=True, tag=True):
    seat: int


class Model(pydantic.BaseModel):
    number: int = pydantic.Field(alias="No")
    due: Decimal
    colours: list[Colour] = []


@dataclass(frozen=True)
class Place:
    name: str
    at: Point
    colour: Colour
    tags: frozenset[str] = frozenset()
    photo: bytes = b""
    people: tuple[Owner | Guest, ...] = ()
    seen: dict[str, datetime] = field(default_factory=dict, hash=False)


PLACE = Place(
    "café",
    Point(1, 2.5),
    Colour.RED,
    frozenset({"a", "b"}),
    b"\x00\xff",
    (Owner("Ann Lee", date(2020, 2, 29)), Guest(3)),
    {"first": datetime(2026, 1, 2, 3, 4, 5, 6, UTC)},
)
MODEL = Model(No=3, due=Decimal("9.50"), colours=[Colour.RED])


@tool
def place() -> Place:
    return PLACE


@tool
def model() -> Model:
    return MODEL


@tool
def many() -> dict[str, list[Model | None]]:
    return {"a": [MODEL, None], "b": []}


@tool
def places() -> set[Place]:
    return {PLACE, Place("other", Point(0), Colour.RED)}


@tool
def colours() -> tuple[Colour, Size]:
    return Colour.RED, Size.SMALL


@tool
def anything(value: Any) -> Any:
    return value


@tool
def streamed() -> Iterator[Point]:
    yield Point(1)
    yield Point(2)


ITSELF: list[object] = []
ITSELF.append(ITSELF)
ZONES = [st.none(), st.just(UTC), st.just(timezone(timedelta(minutes=-90)))]


def unfolded(moment: Any) -> Any:
    """Return a datetime without `fold`, which ISO format cannot express."""
    return moment.replace(fold=0)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.text(st.characters(categories=("Cs", "Lu")))
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.dates()
    | st.times().map(unfolded)
    | st.timedeltas()
    | st.datetimes(timezones=st.one_of(ZONES)).map(unfolded),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.sampled_from(["$set", "$x", "$tuple"]), inner, max_size=4)
    ),
    max_leaves=12,
)
hashable = st.integers() | st.text() | st.tuples(st.integers(), st.binary()) | st.uuids()
values = (
    plain
    | st.sets(hashable)
    | st.frozensets(hashable)
    | st.dictionaries(hashable | st.frozensets(st.integers()), plain, max_size=4)
)


def shape(value: object) -> object:
    """Return a value with the classes of all its parts, in their order."""
    if isinstance(value, dict):
        return "dict", [(shape(key), shape(item)) for key, item in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value), {repr(shape(item)) for item in value}
    if isinstance(value, (list, tuple)):
        return type(value), [shape(item) for item in value]
    return type(value), repr(value)


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(values, min_size=1, max_size=8))
def test_builtin_values_replay_equal(tape: Path, given_values: list[object]) -> None:
    """Nested values, and dictionaries that look like tags, keep their class."""
    with record(tape, overwrite=True):
        recorded = [anything(value) for value in given_values]
    with replay(tape):
        replayed = [anything(value) for value in given_values]
    assert shape(recorded) == shape(replayed) == shape(given_values)


@settings(max_examples=300)
@given(values, values)
def test_arguments_compare_equal_exactly_if_they_are_equal(one: object, other: object) -> None:
    """Except that tuples equal lists."""
    from tracefork_core.seams.tools.values import compared

    alike = _compared(one) == _compared(other)
    assert (compared({"it": one}) == compared({"it": other})) is alike


def _compared(value: object) -> object:
    if isinstance(value, dict):
        return "dict", {repr(shape(key)): _compared(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return "list", [_compared(item) for item in value]
    return shape(value)


def test_objects_are_rebuilt_as_the_annotation_says(tape: Path) -> None:
    """Dataclasses, Structs, NamedTuples, enums and models, in containers and streams."""

    def agent() -> list[object]:
        return [place(), model(), many(), places(), colours(), *streamed()]

    with record(tape):
        recorded = agent()
    with replay(tape):
        replayed = agent()
    expected = [PLACE, MODEL, {"a": [MODEL, None], "b": []}]
    assert recorded[:3] == replayed[:3] == expected
    assert recorded[3:] == replayed[3:]
    assert recorded[4:] == [(Colour.RED, Size.SMALL), Point(1), Point(2)]
    assert [type(item) for item in replayed] == [Place, Model, dict, set, tuple, Point, Point]
    assert type(replayed[4][1]) is Size  # type: ignore[index]


def test_both_runs_get_the_decoded_result(tape: Path) -> None:
    """The agent never gets the tool's own object: changing the result changes nothing else."""
    kept: list[int] = []

    def agent() -> list[int]:
        mine = anything(kept)
        mine.append(len(mine))
        return list(kept)

    with record(tape):
        assert agent() == []
    with replay(tape):
        assert agent() == []


def test_a_named_time_zone_becomes_its_offset(tape: Path) -> None:
    """A tape must not look a zone up by name; the moment is the same."""
    moment = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    seen = []
    for session in (record(tape), replay(tape)):
        with session:
            seen.append(anything(moment))
    assert seen[0] == seen[1] == moment
    assert [again.tzinfo for again in seen] == [timezone(timedelta(hours=2))] * 2


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(Point(1), id="a NamedTuple"),
        pytest.param(Colour.RED, id="an enum"),
        pytest.param([PLACE], id="a dataclass"),
        pytest.param(OrderedDict(a=1), id="a kind of dictionary"),
        pytest.param(range(3), id="a range"),
        pytest.param(len, id="a function"),
        pytest.param(ITSELF, id="a list that holds itself"),
    ],
)
def test_a_result_without_an_annotation_for_its_class_is_refused(odd: object, tape: Path) -> None:
    """And so are values of classes that are not supported."""

    @tool
    def returns() -> Any:
        return odd

    with record(tape):
        with pytest.raises(UsageError):
            returns()


@pytest.mark.parametrize(
    "hostile",
    [
        b'{"$import":"os"}',
        b'{"$object":{"name":"x"}}',
        b'{"$enum":"red"}',
        b'{"$set":[[1]]}',
        b'{"$decimal":"x"}',
        b'{"$int":12}',
        b'{"$timedelta":[1e9,0,0]}',
        b'{"$timedelta":[999999999999,0,0]}',
        b'{"$bytes":"*"}',
        b'{"$dict":[[1]]}',
        b"[" * 5000,
        b'{"$tuple":' * 3000,
        b"nonsense",
        b"\xff",
    ],
)
def test_a_hostile_body_builds_nothing(hostile: bytes) -> None:
    """A body that no recording wrote is not a value."""
    from tracefork_core.seams.tools.values import NoValueError, rebuilt

    with pytest.raises(NoValueError):
        rebuilt(hostile, None)


def test_nan_and_infinities_replay(tape: Path) -> None:
    """JSON has no form for them."""
    for session in (record(tape), replay(tape)):
        with session:
            assert math.isnan(anything(math.nan))
            assert anything([math.inf, -math.inf]) == [math.inf, -math.inf]


def test_values_are_readable_on_the_tape(tape: Path) -> None:
    """Plain JSON is unchanged; other values have a tag."""
    given_value = (1, b"x", Decimal("2.50"), UUID(int=1), date(2026, 1, 2), time(3, 4), {"$ref": 5})
    with record(tape):
        anything(given_value)
    with Tape.open(tape) as opened:
        assert opened.exchanges[0].response_body == (
            b'{"$tuple":[1,{"$bytes":"eA=="},{"$decimal":"2.50"},'
            b'{"$uuid":"00000000-0000-0000-0000-000000000001"},{"$date":"2026-01-02"},'
            b'{"$time":"03:04:00"},{"$dict":[["$ref",5]]}]}'
        )

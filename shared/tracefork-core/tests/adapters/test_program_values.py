"""Objects of the program's classes come back from a tape, and others become JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pytest
from pydantic import BaseModel, field_validator

from tracefork_core.adapters import ProgramValues, result_classes


class Seat(BaseModel):
    row: int


class Stamped(BaseModel):
    """A model that does not accept what it writes."""

    at: str

    @field_validator("at")
    @classmethod
    def stamped(cls, at: str) -> str:
        return f"{at}!"


class Class(Enum):
    FIRST = 1


@dataclass
class Booking:
    seat: Seat
    kind: Class


def book() -> list[Booking] | tuple[Seat, Stamped] | Class:
    raise NotImplementedError


VALUES = ProgramValues(result_classes(book))


@pytest.mark.parametrize(
    "value",
    [
        Seat(row=7),
        [Booking(Seat(row=7), Class.FIRST)],
        {"of": (Seat(row=7), Class.FIRST)},
        {1: {2.5}, "seat": None},
    ],
    ids=repr,
)
def test_a_value_of_annotated_classes_comes_back(value: object) -> None:
    """Also where it is inside of a list, a tuple or a mapping."""
    assert VALUES.storable(value) is value
    again = VALUES.decode(VALUES.encode(value))
    assert (type(again), again) == (type(value), value)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Stamped(at="noon"), {"at": "noon!"}),
        ([type("Other", (BaseModel,), {})()], [{}]),
        ({"a": type("List", (list,), {})([1])}, {"a": [1]}),
    ],
    ids=["it does not come back", "no annotation names it", "a class derived from list"],
)
def test_another_value_is_stored_as_json(value: object, stored: object) -> None:
    """Negative control: the tape names no class that only the value has."""
    assert VALUES.storable(value) == stored


def test_a_name_that_is_not_defined_declares_nothing() -> None:
    """The tool runs all the same."""

    def look_up() -> Missing:  # type: ignore[name-defined]  # noqa: F821
        raise NotImplementedError

    assert list(result_classes(look_up)) == []

"""A stand-in takes the place of an object's methods, in every class that has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import record, replay
from tracefork_core.adapters import (
    Patches,
    State,
    put_in_front,
    replace_in_classes,
    undisturbed,
    upkeep,
)


class Store:
    """A base class of a framework."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.tables = 0

    def get(self, key: str) -> str | None:
        """Return a row."""
        return self.rows.get(key)

    async def aget(self, key: str) -> str | None:
        """Return a row in async code."""
        return self.rows.get(key)

    def setup(self) -> None:
        """Make a table."""
        self.tables += 1


class StandIn:
    """The store as one session sees it."""

    def __init__(self, store: Store, state: State) -> None:
        self._store = store
        self._state = state

    def get(self, own: Callable[[str], str | None], key: str) -> str | None:
        """Ask the store, or answer from the tape."""
        n = self._state.number(key)
        if self._state.is_answered:
            found: Any = self._state.recorded(key, n)[-1].answer
        else:
            with undisturbed():
                found = own(key)
        self._state.note(key, n, found)
        return found

    async def aget(self, _: Any, key: str) -> str | None:
        """Do the same."""
        return self.get(self._store.rows.get, key)

    def setup(self, own: Any) -> None:
        """Make a table, but not in a replay."""
        upkeep(self._state, own)


@pytest.fixture
def patches() -> Iterator[Patches]:
    """Put stand-ins in front of all stores."""
    made = Patches()
    put_in_front(made, Store, ("get", "aget", "setup"), StandIn)
    yield made
    made.undo()


class Loud(Store):
    """A subclass that was there before."""

    def get(self, key: str) -> str | None:
        """Return a row, in capitals."""
        found = super().get(key)
        return found and found.upper()


def test_reads_are_answered_from_the_tape_and_the_object_is_left_alone(
    patches: Patches, tape: Path
) -> None:
    """In methods of the class and of a subclass, plain and async."""

    def agent(store: Store) -> list[str | None]:
        store.setup()
        return [store.get("a"), asyncio.run(store.aget("a")), store.get("b")]

    for kind, said in ((Store, "x"), (Loud, "X")):
        store = kind()
        store.rows["a"] = "x"
        with record(tape, overwrite=True):
            assert agent(store) == [said, "x", None]
        store.rows["a"] = "changed"
        with replay(tape):
            assert agent(store) == [said, "x", None]
        assert store.tables == 1
        with pytest.MonkeyPatch.context() as without:  # The control.
            without.setattr(kind, "get", Store.__dict__["get"].__wrapped__)
            with replay(tape):
                assert store.get("a") == "changed"


def test_a_class_that_is_defined_later_has_stand_ins_until_the_undo(
    patches: Patches, tape: Path
) -> None:
    """Programs define classes of their own in a run."""

    class Late(Store):
        def get(self, key: str) -> str | None:
            return f"late {key}"

    own = vars(Late)["get"].__wrapped__
    with record(tape):
        assert Late().get("a") == "late a"
    patches.undo()
    assert vars(Late)["get"] is own
    assert "__init_subclass__" not in vars(Store)
    assert not hasattr(Store.get, "__wrapped__")


def test_outside_a_session_an_object_works_as_it_does(patches: Patches) -> None:
    """No stand-in is made."""
    store = Store()
    store.rows["a"] = "x"
    assert (store.get("a"), asyncio.run(store.aget("a"))) == ("x", "x")


class Base:
    """A class of a framework, as its models or tools are."""

    def ask(self, text: str) -> str:
        return f"base {text}"

    async def aask(self, text: str) -> str:
        return f"base {text}"


class Derived(Base):
    """A class of the program that calls what it derives from."""

    def ask(self, text: str) -> str:
        return f"derived {super().ask(text)}"

    async def aask(self, text: str) -> str:
        return f"derived {await super().aask(text)}"


class Further(Derived):
    """A class that has the methods of the one it derives from."""


def _counting(owner: type, name: str, original: Any) -> Any:
    def counted(self: Any, text: str) -> Any:
        return f"[{original(self, text)}]"

    async def acounted(self: Any, text: str) -> Any:
        return f"[{await original(self, text)}]"

    return acounted if name == "aask" else counted


async def test_a_call_by_super_is_not_replaced_again() -> None:
    """One call is one step, whatever number of classes define the method."""
    made = Patches()
    replace_in_classes(made, Base, ("ask", "aask"), _counting)
    for kind, answer in ((Base, "[base 1]"), (Derived, "[derived base 1]")):
        assert kind().ask("1") == answer
        assert await kind().aask("1") == answer
    assert Further().ask("1") == "[derived base 1]"
    made.undo()
    assert Further().ask("1") == "derived base 1"

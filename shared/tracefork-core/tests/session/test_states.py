"""What a run reads of state that outlives it is on the tape, and a replay is answered from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import tracefork_core as tracefork
from tracefork_core.adapters import state_of
from tracefork_core.masking.masks import Masks
from tracefork_core.redaction.redaction import Redaction
from tracefork_core.tape.rewrite import rewrite

SECRET = "correct-horse-battery-staple"


class Shelf:
    """A store of the user's, and the stand-in that an adapter would put in front of it."""

    def __init__(self, **things: object) -> None:
        self.things = things

    def get(self, name: str) -> Any:
        """Read a thing, under the session if there is one."""
        state = state_of(self, "Shelf", lambda state: state)
        if state is None:
            return self.things.get(name)
        n = state.number(name)
        if not state.is_answered:
            thing = self.things.get(name)
            state.note(name, n, {"thing": 0}, [("msgpack", msgspec.msgpack.encode(thing))])
            return thing
        noted = state.recorded(name, n)
        return msgspec.msgpack.decode(noted[-1].values[noted[-1].answer["thing"]][1])


def test_a_replay_reads_what_the_recording_read(tape: Path) -> None:
    """Each read gets its own answer, also where the object has changed in between."""
    shelf = Shelf(cup="blue")
    with tracefork.record(tape):
        read = [shelf.get("cup"), shelf.get("cup"), shelf.get("jar")]
        shelf.things["cup"] = "green"
        read.append(shelf.get("cup"))
    shelf.things.clear()
    with tracefork.replay(tape):
        assert [shelf.get(name) for name in ("cup", "cup", "jar", "cup")] == read
    assert read == ["blue", "blue", None, "green"]
    assert shelf.get("cup") is None


def test_a_tape_tells_the_objects_of_a_kind_apart(tape: Path) -> None:
    """By the order in which they are used first; objects that are the same one share a name."""
    first, second = Shelf(cup="blue"), Shelf(cup="red")
    with tracefork.record(tape):
        assert [first.get("cup"), second.get("cup")] == ["blue", "red"]
        here = [state_of(object(), "Shelf", lambda state: state, "one") for _ in range(2)]
    assert here[0] is here[1] is not None
    with tracefork.Tape.open(tape) as opened:
        assert [read.store for read in opened.states] == ["Shelf", "Shelf 2"]
    with tracefork.replay(tape):
        assert [Shelf().get("cup") for _ in range(2)] == ["blue", "red"]


def test_secrets_in_what_was_read_are_masked(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording masks the secrets that it knows; redacting masks those found later."""
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    shelf = Shelf(cup=f"the word is {SECRET}, says a cat")
    with tracefork.record(tape):
        shelf.get("cup")
    assert SECRET.encode() not in tape.read_bytes()
    target = tape.with_name("redacted.tape")
    with tracefork.Tape.open(tape) as opened:
        rewrite(opened, target, Redaction(Masks.read(["re:cat"])))
    with tracefork.replay(tape):
        assert shelf.get("cup").endswith("says a cat")
    with tracefork.replay(target, mask=["re:cat"]):
        read = shelf.get("cup")
    assert read.startswith("the word is ")
    assert "cat" not in read
    assert SECRET not in read


def test_a_long_key_is_kept_as_a_digest(tape: Path) -> None:
    """A prompt can be a key, and a tape has it once already."""
    name = "x" * 5000
    with tracefork.record(tape):
        Shelf(**{name: "blue"}).get(name)
    with tracefork.Tape.open(tape) as opened:
        assert len(opened.states[0].key) < 200
    with tracefork.replay(tape):
        assert Shelf().get(name) == "blue"


def test_a_corrupt_read_is_an_error_of_the_tape(tape: Path) -> None:
    """Its documents are checked before an adapter sees them."""
    with tracefork.record(tape):
        state = state_of(object(), "Shelf", lambda state: state)
        assert state is not None
        state.note("cup", -1, None)
    with (
        tracefork.Tape.open(tape) as opened,
        pytest.raises(tracefork.TapeError, match="corrupt"),
    ):
        _ = opened.states


def test_nothing_stands_in_outside_a_session() -> None:
    """The object is used as ever."""
    assert state_of(object(), "Shelf", lambda state: state) is None
    assert Shelf(cup="blue").get("cup") == "blue"

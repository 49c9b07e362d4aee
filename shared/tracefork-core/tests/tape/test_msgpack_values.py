"""Packed values are read and changed at any depth, without building their objects."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tracefork_core import TapeError
from tracefork_core.tape.checkpoint import plain, rewritten

Ext = msgspec.msgpack.Ext
pack = msgspec.msgpack.encode
unpack = msgspec.msgpack.decode

NAMED = 2
"""The extension of a type with its module, its name and its content."""


def nested(depth: int) -> bytes:
    """Return lists in lists."""
    return b"\x91" * depth + b"\xc0"


def named(content: object) -> Ext:
    return Ext(NAMED, pack(["somewhere", "Thing", content]))


def test_a_value_is_shown_as_json() -> None:
    """Bytes are shown by their number, and other types by their name and content."""
    value = {"a": [1, 2.5, None, True, "text"], 3: b"four", "thing": named({"b": b"xy"})}
    assert plain(pack(value)) == {
        "a": [1, 2.5, None, True, "text"],
        "3": "4 bytes",
        "thing": {"type": "somewhere.Thing", "value": {"b": "2 bytes"}},
    }
    assert plain(pack(Ext(NAMED, pack(["x", 1])))) == ["x", 1]
    assert plain(pack(Ext(99, b"12345"))) == "extension 99, 5 bytes"


def test_every_text_of_a_value_is_changed() -> None:
    """Keys, items, bytes and contents of types are; numbers and foreign extensions are not."""
    value = {"key": ["key", b"key", ("key",)], 1: 2.5, "in": named("key"), "other": Ext(99, b"key")}
    changed = unpack(rewritten(pack(value), lambda text: text.replace(b"key", b"mask")))
    assert changed.pop("in").data == pack(["somewhere", "Thing", "mask"])
    assert changed == {"mask": ["mask", b"mask", ["mask"]], 1: 2.5, "other": Ext(99, b"key")}


@pytest.mark.parametrize("read", [plain, lambda data: rewritten(data, bytes)])
def test_a_value_that_is_not_msgpack_raises_a_tape_error(read: Callable[[bytes], object]) -> None:
    """A stranger may put in other bytes, torn ones, or endlessly nested lists."""
    for data in (b"", b"\xc1", pack("text")[:-1], nested(5000), pack(Ext(NAMED, b"\xc1"))):
        with pytest.raises(TapeError):
            read(data)
    assert read(nested(20)) is not None

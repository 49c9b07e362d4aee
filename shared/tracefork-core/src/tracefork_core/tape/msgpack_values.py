"""Values in MessagePack, read and rewritten without ever making an object of what they name.

Frameworks put their own types into extensions, whose payload is MessagePack again: the name of a
type and what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tracefork_core.errors import TapeError

_NESTED = range(8)
"""The codes of extensions that hold MessagePack."""
_DEEPEST = 200
_DAMAGED = (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError)


def rewritten(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a value with all its texts and bytes changed.

    Raises:
        TapeError: it is no MessagePack.
    """
    try:
        return msgspec.msgpack.encode(_changed(msgspec.msgpack.decode(data), change, 0))
    except _DAMAGED as error:
        raise TapeError(f"tracefork: a value is no MessagePack: {error}.") from error


def plain(data: bytes) -> object:
    """Return a value as JSON has it: bytes by their number, types as `{"type": …, "value": …}`.

    Raises:
        TapeError: it is no MessagePack.
    """
    try:
        return _plain(msgspec.msgpack.decode(data), 0)
    except _DAMAGED as error:
        raise TapeError(f"tracefork: a value is no MessagePack: {error}.") from error


def _changed(value: object, change: Callable[[bytes], bytes], depth: int) -> object:
    if depth > _DEEPEST:
        raise ValueError("it is nested too deep")
    match value:
        case str():
            return change(value.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
        case bytes():
            return change(value)
        case list() | tuple():
            return [_changed(item, change, depth + 1) for item in value]
        case dict():
            return {
                _changed(key, change, depth + 1) if isinstance(key, str) else key: _changed(
                    item, change, depth + 1
                )
                for key, item in value.items()
            }
        case msgspec.msgpack.Ext(code=code, data=data) if code in _NESTED:
            inner = _changed(msgspec.msgpack.decode(data), change, depth + 1)
            return msgspec.msgpack.Ext(code, msgspec.msgpack.encode(inner))
    return value


def _plain(value: object, depth: int) -> object:
    if depth > _DEEPEST:
        raise ValueError("it is nested too deep")
    match value:
        case bytes():
            return f"{len(value)} bytes"
        case list() | tuple():
            return [_plain(item, depth + 1) for item in value]
        case dict():
            return {str(key): _plain(item, depth + 1) for key, item in value.items()}
        case msgspec.msgpack.Ext(code=code, data=data) if code in _NESTED:
            match msgspec.msgpack.decode(data):
                case [str(module), str(name), content, *_]:
                    return {"type": f"{module}.{name}", "value": _plain(content, depth + 1)}
                case other:
                    return _plain(other, depth + 1)
        case msgspec.msgpack.Ext(code=code, data=data):
            return f"extension {code}, {len(bytes(data))} bytes"
        case float() | int() | str() | None:
            return value
    return str(value)

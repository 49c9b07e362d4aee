"""Values of tools as a tape holds them (see `values`), made values of Python again.

A tape names no class, so nothing of a stranger's choosing is built. `$object` and `$enum` become
what the function says it returns: msgspec builds dataclasses, NamedTuples, Structs and enums,
pydantic its models.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import msgspec

from tracefork_core.seams.tools.values import NoValueError


def rebuilt(body: bytes, annotation: object) -> object:
    """Return the value that a tape holds, its objects built as `annotation` says (None: nothing).

    Raises:
        NoValueError: it is no value, or not one of that annotation.
    """
    reader = _Reader()
    try:
        value = reader.of(msgspec.json.decode(body))
        if reader.has_objects:
            if annotation is None:
                raise TypeError("nothing says what its objects are")
            value = msgspec.convert(value, type=annotation, dec_hook=_build)
    except RecursionError:
        raise NoValueError("", "value", " that is too deep") from None
    except Exception as error:  # whatever a class makes of fields that it does not expect
        raise NoValueError("", "value", f": {type(error).__name__}: {error}") from error
    return value


def _build(kind: type, value: object) -> object:
    """Build what msgspec does not know: models of pydantic. Others are what they are, or wrong."""
    validate = getattr(kind, "model_validate", None)
    if callable(validate):
        return validate(value)
    if isinstance(value, kind):
        return value
    raise NotImplementedError(f"{kind!r} is not built from {value!r}")


class _Reader:
    """One value on its way back."""

    def __init__(self) -> None:
        self.has_objects = False

    def of(self, tree: object) -> object:
        if isinstance(tree, list):
            return [self.of(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        if len(tree) == 1:
            ((tag, inner),) = tree.items()
            if tag.startswith("$"):
                return self._tagged(tag, inner)
        return {name: self.of(item) for name, item in tree.items()}

    def _tagged(self, tag: str, inner: object) -> object:
        match tag, inner:
            case ("$object", dict() | list()):
                self.has_objects = True
                if isinstance(inner, list):
                    return self.of(inner)
                return {name: self.of(item) for name, item in inner.items()}
            case ("$enum", _):
                self.has_objects = True
                return self.of(inner)
            case ("$tuple", list()):
                return tuple(self.of(item) for item in inner)
            case ("$set" | "$frozenset", list()):
                return self._set(set if tag == "$set" else frozenset, inner)
            case ("$dict", list()):
                return {self.of(name): self.of(item) for name, item in inner}
            case ("$timedelta", [int(days), int(seconds), int(microseconds)]):
                return timedelta(days, seconds, microseconds)
            case (_, str()) if read := _READERS.get(tag):
                return read(inner)
        raise ValueError(f"{tag} of {type(inner).__name__}")

    def _set(self, kind: type[set[object] | frozenset[object]], inner: list[object]) -> object:
        before, self.has_objects = self.has_objects, False
        items = [self.of(item) for item in inner]
        # The fields of an object have no hash: msgspec makes a set of the objects.
        value = items if self.has_objects else kind(items)
        self.has_objects = self.has_objects or before
        return value


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_READERS: dict[str, Callable[[str], object]] = {
    "$bytes": _from_base64,
    "$str": lambda text: _from_base64(text).decode("utf-8", "surrogatepass"),
    "$int": lambda text: int(text, 16),
    "$float": float,
    "$datetime": datetime.fromisoformat,
    "$date": date.fromisoformat,
    "$time": time.fromisoformat,
    "$decimal": Decimal,
    "$uuid": UUID,
    "$path": Path,
}

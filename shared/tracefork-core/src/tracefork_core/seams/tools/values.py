"""Convert arguments and results of tools between Python and JSON.

JSON values stay as they are. Other values become an object with one name that begins with `$`:

    $tuple $set $frozenset $dict     containers; a dictionary as pairs, if its keys are not text
    $bytes $str $int $float          base64; text that is not Unicode; large integers; nan and inf
    $datetime $date $time $timedelta $decimal $uuid $path
    $object $enum                    an object as its fields, an enum as its value, without a class

A tape names no class, so a hostile tape cannot choose one to be built. `$object` and `$enum` are
built as the function's return annotation says: msgspec builds dataclasses, NamedTuples, Structs and
enums, pydantic its models.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from uuid import UUID

import msgspec

from tracefork_core.tape.digest import canonical
from tracefork_core.tape.json_pointer import escaped

_OBJECT, _ENUM = "$object", "$enum"
_PATH = type(Path())
_WORDS = 2**63
"""Many JSON readers do not accept integers from here on."""


class NoValueError(Exception):
    """A value that a tape cannot hold: its JSON pointer `where`, its class `kind`, and `why`."""

    def __init__(self, where: str, kind: str, why: str = "") -> None:
        self.where = where
        self.kind = kind
        self.why = why
        super().__init__(f"{where}: {kind}{why}")


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """A value as JSON, and the classes in it, which the tape does not name."""

    body: bytes
    classes: tuple[type, ...]


def compared(values: dict[str, object]) -> bytes:
    """Return arguments as canonical JSON, to be compared: objects as fields, tuples as lists.

    Raises:
        NoValueError: a value has no JSON form.
    """
    return canonical(_Tree(exact=False).of_mapping(values, ""))


def kept(value: object) -> Kept:
    """Return a result as JSON from which it can be rebuilt; dictionaries keep their order.

    Raises:
        NoValueError: a part of the value could not be rebuilt.
    """
    tree = _Tree(exact=True)
    body = msgspec.json.encode(tree.of(value, ""))
    return Kept(body, tuple(tree.classes))


class _Tree:
    """Converts one value to JSON; `exact` keeps what is needed to rebuild it."""

    def __init__(self, *, exact: bool) -> None:
        self.classes: list[type] = []
        self._exact = exact

    def of(self, value: object, where: str) -> object:
        try:
            return self._of(value, where)
        except RecursionError:
            raise NoValueError("", type(value).__name__, " that holds itself") from None

    def of_mapping(self, values: dict[str, object], where: str) -> dict[str, object]:
        return {name: self.of(value, f"{where}/{escaped(name)}") for name, value in values.items()}

    def _of(self, value: object, where: str) -> object:
        kind = type(value)
        if value is None or kind is bool:
            return value
        if write := _WRITERS.get(kind):
            return write(self, value, where)
        if isinstance(value, Enum):
            return self._tagged(_ENUM, kind, self._of(value.value, where))
        if (fields := _fields(value)) is not None:
            if isinstance(fields, tuple):
                return self._tagged(_OBJECT, kind, self.of_items(fields, where))
            return self._tagged(_OBJECT, kind, self.of_mapping(fields, where))
        if not self._exact:
            for base, write in _WRITERS.items():
                if isinstance(value, base):
                    return write(self, value, where)
        raise NoValueError(where, f"{kind.__module__}.{kind.__qualname__}")

    def _tagged(self, tag: str, kind: type, tree: object) -> object:
        self.classes.append(kind)
        return {tag: tree} if self._exact else tree

    def of_items(self, items: Iterable[object], where: str) -> list[object]:
        return [self._of(item, f"{where}/{i}") for i, item in enumerate(items)]

    def of_tuple(self, items: Iterable[object], where: str) -> object:
        tree = self.of_items(items, where)
        return {"$tuple": tree} if self._exact else tree

    def of_dict(self, given: dict[object, object], where: str) -> object:
        names = list(given)
        tag_like = len(names) == 1 and isinstance(names[0], str) and names[0].startswith("$")
        if not tag_like and all(type(name) is str and _is_text(name) for name in names):
            return {
                name: self._of(item, f"{where}/{escaped(str(name))}")
                for name, item in given.items()
            }
        pairs = [
            [self._of(name, where), self._of(item, f"{where}/{escaped(str(name))}")]
            for name, item in given.items()
        ]
        return {"$dict": pairs if self._exact else sorted(pairs, key=canonical)}

    def of_set(self, tag: str, items: Iterable[object], where: str) -> object:
        before = len(self.classes)
        tree = sorted((self._of(item, where) for item in items), key=canonical)
        # Sorted: the order of a set, and so of its classes, depends on hashes.
        self.classes[before:] = sorted(self.classes[before:], key=lambda kind: kind.__qualname__)
        return {tag: tree}


def _fields(value: object) -> dict[str, object] | tuple[object, ...] | None:
    """Return the fields from which an object can be built, named or not; None if there are none."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(kind) if f.init}
    if isinstance(value, msgspec.Struct):
        return _fields_of_struct(value)
    if isinstance(value, tuple):
        return tuple(value) if hasattr(kind, "_fields") else None
    dump = getattr(value, "model_dump", None)
    if dump is not None and hasattr(kind, "model_validate"):
        fields = dump(by_alias=True, round_trip=True)
        return fields if isinstance(fields, dict) else None
    return None


def _fields_of_struct(value: msgspec.Struct) -> dict[str, object] | tuple[object, ...]:
    config, encoded_names = value.__struct_config__, value.__struct_encode_fields__
    tag = {config.tag_field: config.tag} if config.tag_field else {}
    names = zip(encoded_names, value.__struct_fields__, strict=True)
    fields = {**tag, **{name: getattr(value, field) for name, field in names}}
    return tuple(fields.values()) if config.array_like else fields


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _str(text: str) -> object:
    return text if _is_text(text) else {"$str": _base64(text.encode("utf-8", "surrogatepass"))}


def _float(number: float) -> object:
    return number if math.isfinite(number) else {"$float": repr(float(number))}


def _int(number: int) -> object:
    return int(number) if -_WORDS <= number < _WORDS else {"$int": hex(number)}


def _moment(moment: datetime) -> datetime:
    """Return a datetime with its offset as time zone: named zones depend on the machine."""
    offset = moment.utcoffset()
    return moment if offset is None else moment.replace(tzinfo=timezone(offset))


def _tagging(tag: str, spell: Callable[..., object]) -> Callable[[_Tree, object, str], object]:
    return lambda tree, value, where: {tag: spell(value)}


_WRITERS: dict[type, Callable[..., object]] = {
    # If one class is the base of another, the derived class comes first.
    str: lambda tree, value, where: _str(str(value)),
    int: lambda tree, value, where: _int(value),
    float: lambda tree, value, where: _float(float(value)),
    list: _Tree.of_items,
    dict: _Tree.of_dict,
    tuple: _Tree.of_tuple,
    bytes: _tagging("$bytes", _base64),
    set: lambda tree, value, where: tree.of_set("$set", value, where),
    frozenset: lambda tree, value, where: tree.of_set("$frozenset", value, where),
    datetime: _tagging("$datetime", lambda moment: _moment(moment).isoformat()),
    date: _tagging("$date", date.isoformat),
    time: _tagging("$time", time.isoformat),
    timedelta: _tagging("$timedelta", lambda it: [it.days, it.seconds, it.microseconds]),
    Decimal: _tagging("$decimal", str),
    UUID: _tagging("$uuid", str),
    _PATH: _tagging("$path", str),
}


def rebuilt(body: bytes, annotation: object) -> object:
    """Return the recorded value, with its objects built as `annotation` says (None: unknown).

    Raises:
        NoValueError: the body is not a value, or does not fit the annotation.
    """
    reader = _Reader()
    try:
        value = reader.of(msgspec.json.decode(body))
        if reader.has_objects:
            if annotation is None:
                raise TypeError("it contains objects, and no annotation says of which class")
            value = msgspec.convert(value, type=annotation, dec_hook=_build)
    except RecursionError:
        raise NoValueError("", "value", " that is too deep") from None
    except Exception as error:  # any class may be built here, and raise anything
        raise NoValueError("", "value", f": {type(error).__name__}: {error}") from error
    return value


def _build(kind: type, value: object) -> object:
    """Build models of pydantic, which msgspec does not know; check instances of other classes."""
    validate = getattr(kind, "model_validate", None)
    if callable(validate):
        return validate(value)
    if isinstance(value, kind):
        return value
    raise NotImplementedError(f"{kind!r} is not built from {value!r}")


class _Reader:
    """Converts one value back from JSON."""

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
        # The fields of an object are not hashable: msgspec builds the objects, and then the set.
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

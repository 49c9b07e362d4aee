"""LangGraph's serialization, made strict: the same bytes, but nothing is lost silently.

A checkpoint names the types of its values, and reading it creates objects of these types. So a
checkpoint file is as dangerous as code to a reader that trusts it. This reader creates LangGraph's
own safe types, the types that you allowed, and the types that it wrote itself. It names any other
type in an error.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import ormsgpack
from langgraph.checkpoint.serde import _msgpack, jsonplus
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send

from tracefork_core import UsageError
from tracefork_langgraph.nesting import OPTION, Reading
from tracefork_langgraph.search import answer_schemas, task_results

SECRET = "tracefork-secret-not-kept"  # noqa: S105 - a placeholder, not a secret
"""The value that a SecretStr has when it is read back."""
TypeName = tuple[str, ...]
"""The module and the name of a type."""
TAGS = ("null", "bytes", "bytearray", "msgpack")
"""The formats that are read. Any other format (JSON, pickle) can run code."""

_SECRETS = {
    (f"pydantic.{module}", f"Secret{kind}")
    for module in ("types", "v1.types")
    for kind in ("Str", "Bytes")
}
_HASHED = {("builtins", "set"), ("builtins", "frozenset")}
_MAIN = "__main__"
_METHOD = jsonplus.EXT_METHOD_SINGLE_ARG
_reading: ContextVar[Reading] = ContextVar("tracefork_serde_reading")


class StrictSerializer(JsonPlusSerializer):
    """Write what JsonPlusSerializer writes; when reading, name every type that is not allowed.

    Args:
        allow: types that may be created, as classes or as (module, name).
    """

    def __init__(self, allow: Iterable[type | TypeName] = ()) -> None:
        super().__init__(allowed_msgpack_modules=None, __unpack_ext_hook__=self._made)
        self.allowed = {type_name(kind) for kind in allow}
        self._written: set[TypeName] = set()
        self._encode = _encoder(self._note)

    def with_msgpack_allowlist(self, extra: Iterable[type | TypeName]) -> StrictSerializer:
        """Return a serializer that also allows these types and the types that this one wrote."""
        names = {type_name(kind) for kind in extra}
        if names <= self.allowed:
            return self
        other = StrictSerializer([*self.allowed, *names])
        other._written = self._written
        return other

    def dumps_typed(self, obj: object) -> tuple[str, bytes]:
        """Serialize a value to its tag and its bytes.

        Raises:
            TypeError: it contains something that cannot be serialized.
        """
        if obj is None or isinstance(obj, (bytes, bytearray)):
            return cast("tuple[str, bytes]", super().dumps_typed(obj))
        return "msgpack", self._encode(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialize a value from its tag and its bytes.

        Raises:
            UsageError: it contains a type that is not allowed, or that cannot be created.
        """
        tag, body = data
        if tag not in TAGS:
            raise UsageError(
                f"tracefork: a checkpoint holds a value in the format {tag!r}; tracefork reads "
                f"only {', '.join(TAGS)}."
            )
        reading = Reading(body)
        token = _reading.set(reading)
        try:
            return super().loads_typed((tag, body))
        except ValueError as error:
            failures = reading.failures  # ormsgpack forgets what its hook raised.
            if unknown := self._unknown_in(body):
                raise UsageError(_refusal(unknown)) from None
            if failures and isinstance(failures[0], UsageError):
                raise failures[0] from None
            raise UsageError(f"tracefork: a value in a checkpoint cannot be read: {error}.") from (
                failures[0] if failures else error
            )
        finally:
            _reading.reset(token)

    def _note(self, name: TypeName) -> None:
        self._written.add(name)

    def _made(self, code: int, data: bytes) -> Any:
        """Return the object that a MessagePack extension stands for."""
        reading = _reading.get()
        try:
            return self._value(code, reading.unpacked(data, self._made))
        except Exception as error:
            reading.failures.append(error)
            raise

    def _value(self, code: int, inner: Any) -> Any:
        if code == jsonplus.EXT_DELTA_SNAPSHOT:
            return _DeltaSnapshot(inner)
        if code == jsonplus.EXT_NUMPY_ARRAY:
            return _array(*inner)
        name = self._here((str(inner[0]), str(inner[1])))
        method = inner[3] if code == _METHOD else None
        if not self._is_known(name, method):
            raise UsageError(
                f"tracefork: a checkpoint holds the type {'.'.join(name)}, which is not allowed."
            )
        make = _MAKERS.get(code)
        if make is None:
            raise UsageError(
                f"tracefork: a checkpoint holds a MessagePack extension of unknown type {code}."
            )
        if name in _HASHED:
            inner[2] = [_hashable(member) for member in inner[2]]
        try:
            cls = getattr(importlib.import_module(name[0]), name[1])
            return make(cls if method is None else getattr(cls, method), inner[2])
        except Exception as error:
            raise UsageError(
                f"tracefork: a {'.'.join(name)} in a checkpoint cannot be recreated: "
                f"{type(error).__name__}: {error}."
            ) from error

    def _unknown_in(self, body: bytes) -> list[TypeName]:
        """Return all types in a value that are not allowed, without creating any object."""
        unknown: dict[TypeName, None] = {}
        reading = _reading.get()

        def look(code: int, data: bytes) -> None:
            inner = reading.unpacked(data, look)
            if code in _MAKERS:
                name = self._here((str(inner[0]), str(inner[1])))
                if not self._is_known(name, inner[3] if code == _METHOD else None):
                    unknown[name] = None

        with suppress(ValueError):
            ormsgpack.unpackb(body, ext_hook=look, option=OPTION)
        return list(unknown)

    def _here(self, name: TypeName) -> TypeName:
        """Return the name that a type has in this process.

        A type of a script belongs to `__main__` if the script is run, and to its module if it is
        imported.
        """
        if name in self.allowed or name in self._written or name in _msgpack.SAFE_MSGPACK_TYPES:
            return name
        known = self.allowed | self._written
        if name[0] == _MAIN:
            imported = [name_here for name_here in known if name_here[1] == name[1]]
            return imported[0] if len(imported) == 1 else name
        file = Path(getattr(sys.modules[_MAIN], "__file__", None) or "")
        script = (_MAIN, name[1])
        return script if script in known and file.stem == name[0] else name

    def _is_known(self, name: TypeName, method: str | None) -> bool:
        if method is not None and (*name, method) not in _msgpack.SAFE_MSGPACK_METHODS:
            return False
        safe = name in _msgpack.SAFE_MSGPACK_TYPES or name in _SECRETS
        return safe or name in self.allowed or name in self._written


def type_name(one: type | TypeName) -> TypeName:
    """Return the module and the name of a type."""
    return (one.__module__, one.__name__) if isinstance(one, type) else tuple(one)


def schema_types(graph: Any) -> set[TypeName]:
    """Return the types that a compiled graph and its subgraphs declare for their states.

    These include the response formats of its agents, whose state says only `Any`, and the return
    types of its tasks.
    """
    from langgraph._internal._serde import build_serde_allowlist

    answers = [*answer_schemas(graph), *task_results(graph)]
    types: set[TypeName] = build_serde_allowlist(schemas=answers, channels={})
    for pregel in (graph, *(inner for _, inner in graph.get_subgraphs(recurse=True))):
        builder = getattr(pregel, "builder", None)
        nodes = getattr(builder, "nodes", {}).values()
        schemas = [getattr(builder, name, None) for name in _SCHEMAS]
        schemas.extend(getattr(node, "input_schema", None) for node in nodes)
        types |= build_serde_allowlist(schemas=schemas, channels=pregel.channels)
    return types


_SCHEMAS = ("state_schema", "input_schema", "output_schema", "context_schema")


def _encoder(note: Callable[[TypeName], None]) -> Callable[[object], bytes]:
    """Return LangGraph's encoder, changed so that it reports each type and hides secrets.

    LangGraph's encoder calls itself for nested objects through a global of its module. So this is
    the same code with another value for that global.
    """
    plain: set[type] = {_DeltaSnapshot}

    def default(value: Any) -> Any:
        kind = type(value)
        if kind not in plain:  # Once per type: a state has thousands of objects of a few types.
            if hasattr(kind, "get_secret_value"):
                is_bytes = isinstance(value.get_secret_value(), bytes)
                return default_of(kind(SECRET.encode() if is_bytes else SECRET))
            note((kind.__module__, kind.__name__))
            plain.add(kind)
        return default_of(value)

    def encode(value: object) -> bytes:
        return bytes(ormsgpack.packb(value, default=default, option=option))

    option = jsonplus._option  # noqa: SLF001 - for the same bytes as LangGraph
    original = cast("FunctionType", jsonplus._msgpack_default)  # noqa: SLF001
    names = {**original.__globals__, "_msgpack_enc": encode}
    default_of = FunctionType(original.__code__, names, original.__name__)
    return encode


def _hashable(value: Any) -> Any:
    """Return a member of a set as it was written: what reads as a list was a tuple."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _array(dtype: str, shape: Collection[int], order: Any, data: bytes) -> Any:
    np = importlib.import_module("numpy")  # Not a dependency: only a numpy user has arrays.
    return np.frombuffer(data, dtype=np.dtype(dtype)).reshape(shape, order=order)


def _with_all(cls: Any, args: Any) -> Any:
    return Send(args[0], args[1], timeout=args[2]) if cls is Send and args[2:] else cls(*args)


def _with_fields(cls: Any, values: dict[str, Any]) -> Any:
    """Create an object from its fields, including those that its constructor does not take."""
    late = (
        {field.name for field in dataclasses.fields(cls) if not field.init}
        if dataclasses.is_dataclass(cls)
        else set()
    )
    made = cls(**{name: value for name, value in values.items() if name not in late})
    for name in late & values.keys():
        object.__setattr__(made, name, values[name])
    return made


def _as_model(cls: Any, values: Any) -> Any:
    """Create a pydantic model, without validation if it no longer validates.

    A `RootModel` is created from its one value instead of from fields.
    """
    is_fields = isinstance(values, dict) and not getattr(cls, "__pydantic_root_model__", False)
    args, fields = ((), values) if is_fields else ((values,), {})
    try:
        return cls(*args, **fields)
    except (ValueError, TypeError):
        construct = cls.model_construct if hasattr(cls, "model_construct") else cls.construct
        return construct(*args, **fields)


_MAKERS: dict[int, Callable[[Any, Any], Any]] = {
    jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG: lambda cls, argument: cls(argument),
    jsonplus.EXT_CONSTRUCTOR_POS_ARGS: _with_all,
    jsonplus.EXT_CONSTRUCTOR_KW_ARGS: _with_fields,
    jsonplus.EXT_METHOD_SINGLE_ARG: lambda method, argument: method(argument),
    jsonplus.EXT_PYDANTIC_V1: _as_model,
    jsonplus.EXT_PYDANTIC_V2: _as_model,
}


def _refusal(unknown: Collection[TypeName]) -> str:
    names = ", ".join(".".join(name) for name in unknown)
    return (
        f"tracefork: a checkpoint holds types that are not allowed here: {names}. If they are "
        f"yours, use TapeSaver(path, allow=[{', '.join(name[-1] for name in unknown)}]). If a "
        "schema of the graph names them, calling attach(graph) before the graph runs is enough."
    )

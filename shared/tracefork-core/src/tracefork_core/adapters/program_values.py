"""Convert what tools return where that holds objects of the program's own classes.

A tool may return anything, and a framework makes JSON of it for the model. A tape names no class of
the program. So classes are looked up where the tool's function names them: in its annotation. What
no replay could rebuild becomes JSON, in the recording, too.

pydantic does the work. Core does not depend on it: frameworks whose tools return such objects do.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from enum import Enum
from inspect import unwrap
from typing import Any, get_args, get_type_hints

from tracefork_core.seams.tools.framework_tools import FrameworkValues


class ProgramValues(FrameworkValues):
    """Converts models of pydantic, dataclasses and enums, besides a framework's classes.

    Args:
        kinds: the classes that are known, those of `result_classes` say.
    """

    def __init__(self, kinds: Iterable[type] = ()) -> None:
        self._known = {kind.__name__: kind for kind in kinds}

    def class_named(self, name: str) -> type | None:
        """Return the class that a name on a tape stands for, or None."""
        return self._known.get(name)

    def fields(self, value: object) -> dict[str, Any] | None:
        kind = type(value)
        if self.class_named(kind.__name__) is not kind:
            return None
        from pydantic import TypeAdapter

        return {"value": TypeAdapter(kind).dump_python(value, mode="json")}

    def built(self, name: str, fields: dict[str, Any]) -> object:
        if (kind := self.class_named(name)) is None:
            raise LookupError(name)
        from pydantic import TypeAdapter

        return TypeAdapter(kind).validate_json(json.dumps(fields["value"]))

    def storable(self, value: object) -> object:
        """Return a value that a replay can rebuild: itself, or what the model gets for it."""
        return value if self.hold(value) else as_json(value)


def as_json(value: object) -> Any:
    """Return a value as JSON, as pydantic makes it; objects without that as their `repr`."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=repr)


def result_classes(function: object) -> Iterator[type]:
    """Yield the classes that hold data which a function's return annotation names."""
    try:
        hints = get_type_hints(unwrap(function)) if callable(function) else {}
    except Exception:  # noqa: BLE001 - a name that is not defined: the tool runs all the same
        return
    yield from classes_in(hints.get("return"))


def classes_in(annotation: object) -> Iterator[type]:
    """Yield the classes that hold data which an annotation names."""
    for part in get_args(annotation):
        yield from classes_in(part)
    if isinstance(annotation, type) and holds_data(annotation):
        yield annotation


def holds_data(kind: type) -> bool:
    """Return whether a class is a model of pydantic, a dataclass or an enum."""
    is_model = hasattr(kind, "model_validate") and hasattr(kind, "model_fields")
    return is_model or issubclass(kind, Enum) or dataclasses.is_dataclass(kind)

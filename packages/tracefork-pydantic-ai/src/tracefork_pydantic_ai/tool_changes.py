"""Note what a tool changes besides returning a result, and do it again in a replay.

A tool gets the context of the run. It may change the run's dependencies, put messages into the
conversation, emit events, load a capability, or cancel the run. A replay does not run the tool, and
later prompts and the program itself see these changes.

Calls of methods of the context are noted as they happen, so each of several tools at once has its
own. Dependencies are objects of the program, and are compared before and after: their attributes,
those of dataclasses, models and objects of the program in them, and the items of mappings.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from itertools import groupby
from typing import Any

from pydantic import BaseModel
from pydantic_ai import RunContext
from pydantic_ai.messages import UserPromptPart
from pydantic_core import to_json

from tracefork_core.adapters import Changes, Patches, values_set
from tracefork_pydantic_ai.tool_values import ToolValues

_METHODS = ("cancel", "emit", "enqueue", "load_capability")
"""Methods of the context that change the run; not each version has them all."""
_DEPS = "deps"
_DEPTH = 4
_NOTHING: Any = (None, None)

Path = tuple[tuple[str, Any], ...]
"""The way to a value from the dependencies: attributes and items."""


class OfRun(Changes):
    """What one call changes in its run."""

    def __init__(self, name: str, context: Any, values: ToolValues) -> None:
        self._name = name
        self._context = context
        self._values = values
        self._noted: list[Any] = []
        self._home = type(context.deps).__module__.partition(".")[0]

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what the block does to the context and the dependencies of the run."""
        self._before = dict(self._snapshot(self._context.deps))
        with values_set({_changes: self}):
            yield

    def note(self, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Note a call of a method of the context."""
        called = [method, [copy.copy(it) for it in args], dict(options)]
        if method == "cancel":  # The call never ends, so no replay gets to know.
            self._warn("cancelled its run")
        elif self._values.hold(called):
            self._noted.append(called)
        else:
            self._warn(f"called `{method}` of its context with an object of its own")

    async def made(self) -> object:
        """Return all changes as data."""
        found = list(self._noted)
        replaced: list[Path] = []
        for path, (value, state) in self._snapshot(self._context.deps):
            if any(path[: len(above)] == above for above in replaced):
                continue
            if self._before.get(path, _NOTHING)[1] == state:
                continue
            if self._values.hold(value):
                found.append([_DEPS, [list(part) for part in path], copy.deepcopy(value)])
            else:
                self._warn(f"changed `{_spelled(path)}`, which holds objects")
            replaced.append(path)
        return found

    async def make_again(self, made: Any) -> None:
        """Make recorded changes again."""
        for name, where, given in made:
            if name == _DEPS:
                _put(self._context, [("attribute", "deps"), *where], given)
                continue
            result = getattr(self._context, name)(*where, **given)
            if name == "emit":
                await result

    def _snapshot(self, value: Any, path: Path = ()) -> Iterator[tuple[Path, tuple[Any, Any]]]:
        """Yield the values in the dependencies, each with its state; an object before its parts."""
        parts = self._parts(value) if len(path) < _DEPTH else None
        is_object = parts is not None and not isinstance(value, dict)
        if not is_object and self._values.hold(value):
            yield path, (value, to_json(self._values.encode(value), inf_nan_mode="constants"))
        elif parts is not None:
            if is_object and path:
                yield path, (value, id(value))
            for name, part in parts.items():
                yield from self._snapshot(part, (*path, (_how(value), name)))
        elif isinstance(value, (list, set, dict)):
            yield path, (value, [id(item) for item in value])

    def _parts(self, holder: object) -> dict[str, Any] | None:
        """Return the parts of an object of the program or a mapping; None if it is a value."""
        if type(holder) is dict:
            return {key: value for key, value in holder.items() if isinstance(key, str)}
        kind = type(holder)
        root = kind.__module__.partition(".")[0]
        is_data = dataclasses.is_dataclass(kind) or issubclass(kind, BaseModel)
        if root in ("builtins", "pydantic_ai") or not (is_data or root == self._home):
            return None
        return dict(vars(holder)) if hasattr(holder, "__dict__") else None

    def _warn(self, what: str) -> None:
        warnings.warn(
            f"tracefork: the tool {self._name} {what}. A replay does not run the tool and cannot "
            "make this change again, so a later prompt may differ. Mark the tool with "
            "tracefork_pydantic_ai.leave_live(tool).",
            stacklevel=2,
        )


_changes: ContextVar[OfRun | None] = ContextVar("tracefork_pydantic_ai_changes", default=None)


def put_in(patches: Patches) -> None:
    """Note what tools do to the context of their run."""
    for name in _METHODS:
        if hasattr(RunContext, name):
            patches.wrap(RunContext, name, partial(_noting, name))


def _noting(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def called(self: Any, *args: Any, **options: Any) -> Any:
        if (changes := _changes.get()) is not None:
            if name == "enqueue":
                args = tuple(_with_times(args))
            changes.note(name, args, options)
        return method(self, *args, **options)

    return called


def _with_times(content: tuple[Any, ...]) -> Iterator[Any]:
    """Yield what a tool enqueues, with texts in parts: those have the time at which it did so."""
    for is_user, items in groupby(content, lambda it: not hasattr(it, "part_kind")):
        given = list(items)
        if not is_user or any(hasattr(it, "parts") for it in given):
            yield from given
        else:
            is_text = len(given) == 1 and isinstance(given[0], str)
            yield UserPromptPart(given[0] if is_text else given)


def _how(holder: object) -> str:
    return "item" if isinstance(holder, dict) else "attribute"


def _put(holder: Any, path: list[Any], value: Any) -> None:
    """Set a value; a container that others hold, too, is changed in place."""
    *way, (how, name) = path
    for part_how, part in way:
        holder = holder[part] if part_how == "item" else getattr(holder, part)
    before: Any = holder.get(name) if how == "item" else getattr(holder, name, None)
    if type(before) is type(value) is list:
        before[:] = value
    elif type(before) is type(value) and isinstance(value, (dict, set)):
        before.clear()
        before.update(value)
    elif how == "item":
        holder[name] = value
    else:
        setattr(holder, name, value)


def _spelled(path: Path) -> str:
    return _DEPS + "".join(f"[{name!r}]" if how == "item" else f".{name}" for how, name in path)

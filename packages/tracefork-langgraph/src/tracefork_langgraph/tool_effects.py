"""What a tool declares: its side effect, the exceptions it raises, whether it stays live.

A tool declares its side effect with `@tracefork.tool` on its function, with
`metadata={"effect": …}`, with a tag `effect:…`, or with the hints of an MCP server, which arrive as
metadata.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Iterator

from langchain_core.tools import BaseTool, ToolException
from langgraph.prebuilt import InjectedStore

from tracefork_core import UsageError
from tracefork_core.adapters import Effect, ToolMark, tool_mark
from tracefork_core.adapters import effect_of as declared_effect
from tracefork_langgraph.search import asks_models, named_by

_TAG = "effect:"
_MCP = "langchain_mcp_adapters"


def effect_of(tool: BaseTool, said: object = None) -> Effect | None:
    """Return the side effect of a tool: `said`, or the declared one; None if there is neither.

    Raises:
        UsageError: the declared value is not an effect.
    """
    tagged = next((tag for tag in tool.tags or () if tag.startswith(_TAG)), None)
    metadata = tool.metadata or {}
    declared = metadata.get("effect"), tagged and tagged.removeprefix(_TAG)
    marked = marked_body(tool)
    effect = declared_effect(tool.name, said, *declared, function=marked)
    if effect is None and marked is None and (reads := metadata.get("readOnlyHint")) is not None:
        return "read" if reads is True else "write"
    return effect


def raised_by(
    tool: BaseTool, listed: Iterable[type[Exception]] = ()
) -> tuple[type[Exception], ...]:
    """Return the listed exceptions and those that the tool's own code names.

    Of several classes with one name, only the first is returned.

    Raises:
        UsageError: a listed value is not an exception class.
    """
    listed = list(listed)
    for kind in listed:
        if Exception not in getattr(kind, "__mro__", ()):
            raise UsageError(
                f"tracefork: raises of {tool.name} must list classes of Exception (got {kind!r})."
            )
    by_name = {kind.__name__: kind for kind in listed}
    marked = mark.raises if (mark := _mark(tool)) else ()
    for kind in (ToolException, *marked, *_named_in(tool)):
        by_name.setdefault(kind.__name__, kind)
    return tuple(by_name.values())


def is_declared(tool: BaseTool) -> bool:
    """Return whether a tool declares its side effect or has `@tracefork.tool` on its function.

    A tool of an MCP server always counts as declared: its work happens in another process.
    """
    if _says_live(tool):
        return False
    modules = (getattr(body, "__module__", None) or "" for body in bodies_of(tool))
    remote = any(module.partition(".")[0] == _MCP for module in modules)
    return remote or _mark(tool) is not None or effect_of(tool) is not None


def is_left_live(tool: BaseTool) -> bool:
    """Return whether a tool also runs in replays, unless `bind_tool` binds it."""
    return not is_declared(tool) and (
        _says_live(tool) or asks_models(tool) or any(arguments_of(tool, InjectedStore))
    )


def arguments_of(tool: BaseTool, kind: type) -> Iterator[str]:
    """Yield the names of a tool's arguments that are annotated with a kind of injection."""
    fields = getattr(tool.args_schema, "model_fields", {})
    for name, field in fields.items():
        for annotation in field.metadata:
            if isinstance(annotation, kind) or (
                isinstance(annotation, type) and issubclass(annotation, kind)
            ):
                yield name


def _says_live(tool: BaseTool) -> bool:
    return (tool.metadata or {}).get("tracefork") == "live"


def bodies_of(tool: BaseTool) -> list[Callable[..., object]]:
    """Return the functions that do the work of a tool, sync and async."""
    given = [getattr(tool, name, None) for name in ("func", "coroutine")]
    if functions := [function for function in given if callable(function)]:
        return functions
    return [getattr(type(tool), name) for name in ("_run", "_arun")]


def marked_body(tool: BaseTool) -> Callable[..., object] | None:
    """Return the function of a tool that has `@tracefork.tool`; None if none has."""
    return next(filter(tool_mark, bodies_of(tool)), None)


def _mark(tool: BaseTool) -> ToolMark | None:
    return next(filter(None, map(tool_mark, bodies_of(tool))), None)


def _named_in(tool: BaseTool) -> Iterator[type[Exception]]:
    for body in bodies_of(tool):
        function = inspect.unwrap(body)
        if isinstance(function, types.FunctionType):
            for named in named_by(function):
                if isinstance(named, type) and issubclass(named, Exception):
                    yield named

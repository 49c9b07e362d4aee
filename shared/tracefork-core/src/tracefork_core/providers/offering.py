"""Fewer tools offered to the model than the request had."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tracefork_core.errors import UsageError
from tracefork_core.providers.call import ToolDefinition
from tracefork_core.providers.lenient import Json, field, items, mapping, mappings, text
from tracefork_core.providers.openai_parts import tool_definitions

# No provider takes an empty list, or a choice among tools that are not there.
_ABOUT_TOOLS = (
    "tools",
    "functions",
    "tool_choice",
    "function_call",
    "parallel_tool_calls",
    "toolConfig",
    "tool_config",
)
_DECLARATIONS = ("functionDeclarations", "function_declarations")


def keep_tools(
    api: str, body: dict[str, Json], offered: Collection[ToolDefinition], names: Collection[str]
) -> None:
    """Offer the tools of these names alone; UsageError for one that was not offered."""
    known = {tool.name for tool in offered}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(
            f"the request offers no tool {', '.join(map(repr, unknown))}: it offers"
            f" {', '.join(sorted(map(repr, known))) or 'none'}"
        )
    for key in ("tools", "functions"):
        if key in body:
            keep = _gemini if api == "gemini" else _openai
            body[key] = list(keep(mappings(body.get(key)), names))
    if not any(body.get(key) for key in ("tools", "functions")):
        for key in _ABOUT_TOOLS:
            body.pop(key, None)
        return
    for key in ("tool_choice", "function_call"):
        if any(name in known and name not in names for name in _named(body.get(key))):
            del body[key]
    _limit(body, names)


def _openai(tools: list[dict[str, Json]], names: Collection[str]) -> Iterator[Json]:
    # Anthropic's tools have their name in the same place.
    for tool in tools:
        own, *members = (found.name for found in tool_definitions([tool]))
        if own in names:
            yield tool
        elif any(member in names for member in members):
            inner = mappings(tool.get("tools"))
            yield {**tool, "tools": [one for one in inner if text(one.get("name")) in names]}


def _gemini(tools: list[dict[str, Json]], names: Collection[str]) -> Iterator[Json]:
    for tool in tools:
        kept: dict[str, Json] = {}
        for kind, settings in tool.items():
            if kind in _DECLARATIONS:
                some = [one for one in mappings(settings) if text(one.get("name")) in names]
                kept |= {kind: list[Json](some)} if some else {}
            elif kind in names:
                kept[kind] = settings
        if kept:
            yield kept


def _named(choice: Json) -> Iterator[str]:
    for key, value in mapping(choice).items():
        if key == "name" and isinstance(value, str):
            yield value
        for one in [value, *items(value)]:
            yield from _named(one)


def _limit(body: dict[str, Json], names: Collection[str]) -> None:
    settings = mapping(field(body, "toolConfig", "tool_config"))
    calling = mapping(field(settings, "functionCallingConfig", "function_calling_config"))
    for key in ("allowedFunctionNames", "allowed_function_names"):
        if key in calling:
            calling[key] = [name for name in items(calling[key]) if name in names]
            if not calling[key]:
                del calling[key]

"""Change a request to Converse, or to a model whose bodies have its form."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tracefork_core import UsageError
from tracefork_core.adapters.formats import Carried, Json, set_values
from tracefork_core.adapters.formats import lenient as le


def change(carried: Carried, changes: Mapping[str, Any]) -> dict[str, Json]:
    """Return the request with changes. Its model is named in the URL.

    Raises:
        UsageError: the request has no such part.
    """
    body = le.mapping(le.parse(le.compact(carried.request)))
    if (at := changes.get("drop_message")) is not None:
        body["messages"] = _without(le.mappings(body.get("messages")), at)
    if (temperature := changes.get("temperature")) is not None:
        config = le.mapping(body.get("inferenceConfig"))
        body["inferenceConfig"] = {**config, "temperature": temperature}
    if (system := changes.get("system")) is not None:
        # What is not a text stays: a mark says up to where the prompt is cached.
        blocks = [block for block in le.mappings(body.get("system")) if "text" not in block]
        body["system"] = [{"text": system}, *blocks]
    if (prompt := changes.get("prompt")) is not None:
        _set_prompt(body, prompt)
    if (tools := changes.get("tools")) is not None:
        _keep_tools(body, tools)
    set_values(body, changes.get("values", {}))
    return body


def _set_prompt(body: dict[str, Json], prompt: str) -> None:
    for message in reversed(le.mappings(body.get("messages"))):
        blocks = le.mappings(message.get("content"))
        places = [n for n, block in enumerate(blocks) if isinstance(block.get("text"), str)]
        if message.get("role") == "user" and places:
            rest = [block for n, block in enumerate(blocks) if n not in places[:-1]]
            rest[rest.index(blocks[places[-1]])] = {"text": prompt}
            message["content"] = [*rest]
            return
    raise UsageError("cannot replace the prompt: the request has no user text in 'messages'")


def _without(messages: list[dict[str, Json]], index: int) -> list[Json]:
    """Leave out a message, and with a tool's call its result: the service refuses one alone."""
    if not -len(messages) <= index < len(messages):
        raise UsageError(
            f"the request has no message {index} in 'messages': it has {len(messages)}, counted"
            " from 0"
        )
    at = index % len(messages)
    gone = set(_links(messages[at]))
    rest: list[Json] = []
    for message in messages[:at] + messages[at + 1 :]:
        blocks = le.mappings(message.get("content"))
        kept = [block for block in blocks if not gone & set(_link(block))]
        if any("reasoningContent" not in block for block in kept) or not blocks:
            rest.append({**message, "content": [*kept]})
    if not rest:
        raise UsageError(f"cannot drop message {index}: no message would be left in 'messages'")
    return rest


def _links(message: dict[str, Json]) -> Iterator[str]:
    for block in le.mappings(message.get("content")):
        yield from _link(block)


def _link(block: dict[str, Json]) -> Iterator[str]:
    for kind in ("toolUse", "toolResult"):
        if called := le.text(le.mapping(block.get(kind)).get("toolUseId")):
            yield called


def _keep_tools(body: dict[str, Json], names: Collection[str]) -> None:
    config = le.mapping(body.get("toolConfig"))
    offered = le.mappings(config.get("tools"))
    known = {name for tool in offered if (name := _name(tool))}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(
            f"the request does not offer the tool {', '.join(map(repr, unknown))}. It offers"
            f" {', '.join(sorted(map(repr, known))) or 'none'}"
        )
    kept: list[Json] = [tool for tool in offered if _name(tool) in names]
    if not kept:
        body.pop("toolConfig", None)
        return
    chosen = le.mapping(le.mapping(config.get("toolChoice")).get("tool")).get("name")
    if isinstance(chosen, str) and chosen not in names:
        config = {key: value for key, value in config.items() if key != "toolChoice"}
    body["toolConfig"] = {**config, "tools": kept}


def _name(tool: dict[str, Json]) -> str:
    stated = le.mapping(le.field(tool, "toolSpec", "systemTool"))
    return le.text(stated.get("name")) or ""

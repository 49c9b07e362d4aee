"""Remove messages or tools from a request.

Providers refuse a tool call without its result, and a result without its call. So dropping a
message with one of the two also drops the other, and each message that this leaves empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from tracefork_core.errors import UsageError
from tracefork_core.providers.call import ToolDefinition
from tracefork_core.providers.lenient import Json, field, items, mapping, mappings, text
from tracefork_core.providers.parts import tool_definitions
from tracefork_core.providers.question import MESSAGES

_Message = dict[str, Json]
_THINKING = ("thinking", "redacted_thinking")

# Removed with the last tool: providers refuse an empty list, or a choice of a missing tool.
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


def drop_message(api: str, body: dict[str, Json], index: int) -> None:
    """Remove a message, counted from 0, or from the end if `index` is negative.

    Raises:
        UsageError: There is no such message, or it is the only one.
    """
    key, _ = MESSAGES[api]
    given = body.get(key)
    alone: list[Json] = [{"role": "user", "content": given}]
    listed = alone if isinstance(given, str) else items(given)
    messages = mappings(listed)
    if len(messages) != len(listed) or not -len(messages) <= index < len(messages):
        raise UsageError(
            f"the request has no message {index} in {key!r}: it has {len(messages)}, counted from 0"
        )
    at = index % len(messages)
    rest = _without_item(messages, at) if api == "openai.responses" else _rest(api, messages, at)
    if not rest:
        raise UsageError(f"cannot drop message {index}: no message would be left in {key!r}")
    body[key] = rest


def _rest(api: str, messages: list[_Message], at: int) -> list[Json]:
    links = _gemini_links(messages) if api == "gemini" else [list(_links(m)) for m in messages]
    gone = set(links[at]) - {None}
    prune = _chat if api == "openai.chat_completions" else _blocks
    rest: list[Json] = []
    for index, message in enumerate(messages):
        if index == at:
            continue
        pruned = prune(message, links[index], gone) if gone & set(links[index]) else message
        if pruned is not None:
            rest.append(pruned)
    return rest


def _without_item(messages: list[_Message], at: int) -> list[Json]:
    call = messages[at].get("call_id")
    gone = {at} | {n for n, item in enumerate(messages) if call and item.get("call_id") == call}
    # A reasoning item must be followed by its result, which refers to it by id.
    for index in range(len(messages) - 1, -1, -1):
        is_last = index + 1 in gone or index + 1 == len(messages)
        if messages[index].get("type") == "reasoning" and is_last:
            gone.add(index)
    rest: list[Json] = []
    for index, item in enumerate(messages):
        if index in gone:
            continue
        orphan = index == at + 1 and messages[at].get("type") == "reasoning"
        rest.append({k: v for k, v in item.items() if k != "id"} if orphan else item)
    return rest


def _links(message: _Message) -> Iterator[str | None]:
    """Yield the call id of each tool call, tool result or block; None for other blocks."""
    if "tool_call_id" in message:
        yield text(message.get("tool_call_id"))
    elif calls := mappings(message.get("tool_calls")):
        yield from (text(call.get("id")) for call in calls)
    else:
        for block in mappings(message.get("content")):
            is_call = block.get("type") == "tool_use"
            yield text(block.get("id") if is_call else block.get("tool_use_id"))


def _gemini_links(contents: list[_Message]) -> list[list[str | None]]:
    # Gemini may send no ids: then the nth result of a name belongs to the nth call of that name.
    seen: Counter[tuple[str, str]] = Counter()
    links: list[list[str | None]] = []
    for content in contents:
        content_links: list[str | None] = []
        for part in mappings(content.get("parts")):
            kinds = (("functionCall", "function_call"), ("functionResponse", "function_response"))
            link = None
            for names in kinds:
                if body := mapping(field(part, *names)):
                    key = (names[0], text(body.get("name")) or "")
                    seen[key] += 1
                    link = text(body.get("id")) or f"{key[1]}#{seen[key]}"
            content_links.append(link)
        links.append(content_links)
    return links


def _chat(message: _Message, links: list[str | None], gone: set[str | None]) -> _Message | None:
    if "tool_call_id" in message:
        return None
    calls = mappings(message.get("tool_calls"))
    kept: list[Json] = [
        call for call, link in zip(calls, links, strict=True) if link is None or link not in gone
    ]
    if kept:
        return {**message, "tool_calls": kept}
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return rest if message.get("content") else None


def _blocks(message: _Message, links: list[str | None], gone: set[str | None]) -> _Message | None:
    key = "parts" if "parts" in message else "content"
    kept = [
        block
        for block, link in zip(mappings(message.get(key)), links, strict=True)
        if link is None or link not in gone
    ]
    says = any(block.get("type") not in _THINKING and not block.get("thought") for block in kept)
    return {**message, key: list[Json](kept)} if says else None


def keep_tools(
    api: str, body: dict[str, Json], offered: Collection[ToolDefinition], names: Collection[str]
) -> None:
    """Remove all tools except those in `names`.

    Raises:
        UsageError: The request does not offer one of them.
    """
    known = {tool.name for tool in offered}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(
            f"the request does not offer the tool {', '.join(map(repr, unknown))}. It offers"
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
    # Also right for Anthropic, whose tools have their name in the same field.
    for tool in tools:
        own, *members = (definition.name for definition in tool_definitions([tool]))
        if own in names:
            yield tool
        elif any(member in names for member in members):
            inner = mappings(tool.get("tools"))
            yield {**tool, "tools": [item for item in inner if text(item.get("name")) in names]}


def _gemini(tools: list[dict[str, Json]], names: Collection[str]) -> Iterator[Json]:
    for tool in tools:
        kept: dict[str, Json] = {}
        for kind, settings in tool.items():
            if kind in _DECLARATIONS:
                some = [item for item in mappings(settings) if text(item.get("name")) in names]
                kept |= {kind: list[Json](some)} if some else {}
            elif kind in names:
                kept[kind] = settings
        if kept:
            yield kept


def _named(choice: Json) -> Iterator[str]:
    for key, value in mapping(choice).items():
        if key == "name" and isinstance(value, str):
            yield value
        for child in [value, *items(value)]:
            yield from _named(child)


def _limit(body: dict[str, Json], names: Collection[str]) -> None:
    settings = mapping(field(body, "toolConfig", "tool_config"))
    calling = mapping(field(settings, "functionCallingConfig", "function_calling_config"))
    for key in ("allowedFunctionNames", "allowed_function_names"):
        if key in calling:
            calling[key] = [name for name in items(calling[key]) if name in names]
            if not calling[key]:
                del calling[key]

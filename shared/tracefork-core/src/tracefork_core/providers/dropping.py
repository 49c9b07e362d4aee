"""A message left out of a request, with the tool calls and answers that would hang in the air.

Providers refuse a call without its answer and an answer without its call: whichever of the two
the message held, the other goes as well, and what is empty then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tracefork_core.errors import UsageError
from tracefork_core.providers.lenient import Json, field, items, mapping, mappings, text
from tracefork_core.providers.question import MESSAGES

_Message = dict[str, Json]
_THINKING = ("thinking", "redacted_thinking")


def drop_message(api: str, body: dict[str, Json], index: int) -> None:
    """Leave out one message, counted from 0, or from the end where `index` is negative."""
    key, _ = MESSAGES[api]
    given = body.get(key)
    alone: list[Json] = [{"role": "user", "content": given}]
    listed = alone if isinstance(given, str) else items(given)
    messages = mappings(listed)
    if len(messages) != len(listed) or not -len(messages) <= index < len(messages):
        raise UsageError(
            f"the request has no message {index} in {key!r}: there are {len(messages)},"
            " counted from 0"
        )
    at = index % len(messages)
    rest = _without_item(messages, at) if api == "openai.responses" else _rest(api, messages, at)
    if not rest:
        raise UsageError(f"without message {index} nothing is left in {key!r}: no model takes that")
    body[key] = rest


def _rest(api: str, messages: list[_Message], at: int) -> list[Json]:
    links = _gemini_links(messages) if api == "gemini" else [list(_links(m)) for m in messages]
    gone = set(links[at]) - {None}
    prune = _chat if api == "openai.chat_completions" else _blocks
    rest: list[Json] = []
    for place, message in enumerate(messages):
        if place == at:
            continue
        kept = prune(message, links[place], gone) if gone & set(links[place]) else message
        if kept is not None:
            rest.append(kept)
    return rest


def _without_item(messages: list[_Message], at: int) -> list[Json]:
    call = messages[at].get("call_id")
    gone = {at} | {n for n, item in enumerate(messages) if call and item.get("call_id") == call}
    # Thinking must be followed by what it led to, and what it led to is known by its id.
    for place in range(len(messages) - 1, -1, -1):
        follows = place + 1 in gone or place + 1 == len(messages)
        if messages[place].get("type") == "reasoning" and follows:
            gone.add(place)
    rest: list[Json] = []
    for place, item in enumerate(messages):
        if place in gone:
            continue
        orphan = place == at + 1 and messages[at].get("type") == "reasoning"
        rest.append({k: v for k, v in item.items() if k != "id"} if orphan else item)
    return rest


def _links(message: _Message) -> Iterator[str | None]:
    """Give the id of the call that each tool call or block makes or answers, None for others."""
    if "tool_call_id" in message:
        yield text(message.get("tool_call_id"))
    elif calls := mappings(message.get("tool_calls")):
        yield from (text(call.get("id")) for call in calls)
    else:
        for block in mappings(message.get("content")):
            is_call = block.get("type") == "tool_use"
            yield text(block.get("id") if is_call else block.get("tool_use_id"))


def _gemini_links(contents: list[_Message]) -> list[list[str | None]]:
    # Without ids, the first answer of a name belongs to the first call of that name, and so on.
    seen: Counter[tuple[str, str]] = Counter()
    links: list[list[str | None]] = []
    for content in contents:
        found: list[str | None] = []
        for part in mappings(content.get("parts")):
            kinds = (("functionCall", "function_call"), ("functionResponse", "function_response"))
            link = None
            for names in kinds:
                if one := mapping(field(part, *names)):
                    key = (names[0], text(one.get("name")) or "")
                    seen[key] += 1
                    link = text(one.get("id")) or f"{key[1]}#{seen[key]}"
            found.append(link)
        links.append(found)
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

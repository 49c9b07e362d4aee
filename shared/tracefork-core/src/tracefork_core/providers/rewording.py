"""The system prompt and the last words of the user, put in other words in a request's body."""

from __future__ import annotations

from collections.abc import Callable

from tracefork_core.errors import UsageError
from tracefork_core.providers.lenient import Json, items, mapping, mappings, text
from tracefork_core.providers.question import MESSAGES

_INSTRUCTING = ("system", "developer")


def set_system(api: str, body: dict[str, Json], prompt: str) -> None:
    """Replace the system prompt, or add one."""
    _SYSTEMS[api](body, prompt)


def set_prompt(api: str, body: dict[str, Json], prompt: str) -> None:
    """Replace the text of the last message in which the user says any; attachments stay."""
    if api == "openai.responses" and isinstance(body.get("input"), str):
        body["input"] = prompt
        return
    key, inner = MESSAGES[api]
    for message in reversed(mappings(body.get(key))):
        if (text(message.get("role")) or "user") != "user":
            continue
        reworded = _reworded(message.get(inner), prompt)
        if reworded is not None:
            message[inner] = reworded
            return
    raise UsageError(f"the request has no text of a user's in {key!r} that could be replaced")


def _reworded(content: Json, prompt: str) -> Json:
    if isinstance(content, str):
        return prompt
    kept: list[Json] = []
    for block in reversed(items(content)):
        if not _is_text(block):
            kept.append(block)
        elif not any(_is_text(other) for other in kept):
            kept.append({**mapping(block), "text": prompt})
    return kept[::-1] if any(_is_text(block) for block in kept) else None


def _is_text(block: Json) -> bool:
    # Gemini's parts have no type; a thought of the model is no word of the user.
    found = mapping(block)
    typed = found.get("type") in (None, "text", "input_text")
    return typed and isinstance(found.get("text"), str) and not found.get("thought")


def _lead(messages: list[Json], prompt: str) -> list[Json]:
    first = next(
        (n for n, one in enumerate(messages) if mapping(one).get("role") not in _INSTRUCTING),
        len(messages),
    )
    opening: dict[str, Json] = mapping(messages[0]) if first else {"role": "system"}
    return [{**opening, "content": prompt}, *messages[first:]]


def _chat(body: dict[str, Json], prompt: str) -> None:
    body["messages"] = _lead(items(body.get("messages")), prompt)


def _responses(body: dict[str, Json], prompt: str) -> None:
    given = items(body.get("input"))
    leads = bool(given) and mapping(given[0]).get("role") in _INSTRUCTING
    if leads and not body.get("instructions"):
        body["input"] = _lead(given, prompt)
    else:
        body["instructions"] = prompt


def _anthropic(body: dict[str, Json], prompt: str) -> None:
    blocks = mappings(body.get("system"))
    # The last block carries the mark up to which the prompt is cached.
    body["system"] = [{**blocks[-1], "text": prompt}] if blocks else prompt


def _gemini(body: dict[str, Json], prompt: str) -> None:
    key = "system_instruction" if "system_instruction" in body else "systemInstruction"
    body[key] = {**mapping(body.get(key)), "parts": [{"text": prompt}]}


_SYSTEMS: dict[str, Callable[[dict[str, Json], str], None]] = {
    "openai.chat_completions": _chat,
    "openai.responses": _responses,
    "anthropic.messages": _anthropic,
    "gemini": _gemini,
}

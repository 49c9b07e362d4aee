"""Edit a request: its model, temperature, prompts, messages, tools or any other JSON value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from urllib.parse import quote, urlsplit

from tracefork_core.errors import UsageError
from tracefork_core.providers.call import ToolDefinition
from tracefork_core.providers.dropping import drop_message as without_message
from tracefork_core.providers.dropping import keep_tools
from tracefork_core.providers.formats import Asked
from tracefork_core.providers.lenient import Json, compact, items, mapping, mappings, parse, text
from tracefork_core.providers.question import MESSAGES, Question, read_question
from tracefork_core.tape.json_pointer import put

_METHOD = re.compile(r"(?::|%3a).*", re.IGNORECASE)

_INSTRUCTING = ("system", "developer")


def edit(
    request: Asked,
    *,
    model: str | None = None,
    temperature: float | None = None,
    system: str | None = None,
    prompt: str | None = None,
    drop_message: int | None = None,
    tools: Collection[str] | None = None,
    set: Mapping[str, object] | None = None,  # noqa: A002 - the verb reads best where it is used
) -> tuple[str, bytes]:
    """Return the URL and the body of a request with these changes.

    Changes apply in the order of the arguments, except that `drop_message` is first, because it
    counts the messages of the original request. The caller sets the content length.

    Args:
        request: The request to edit.
        model: The new model.
        temperature: The new temperature.
        system: The new system prompt.
        prompt: Replaces the last text of the user.
        drop_message: The message to remove, counted from 0, or from the end if negative.
        tools: The names of the tools to keep.
        set: New values by JSON pointer.

    Raises:
        UsageError: The wire format is unknown, or cannot express a change.
    """
    question = read_question(request)
    body = _body(request, question)
    target = mapping(body.get("generateContentRequest")) or body
    api, url = question.call.api, request.url
    words = {"temperature": temperature, "system": system, "prompt": prompt}
    changes = {**words, "drop_message": drop_message, "tools": tools}
    _refuse_without_words(question, changes)
    _refuse_in_session(question, {"model": model, **changes})
    if model is not None:
        url = _set_model(url, question, body, model)
    change_body(
        api,
        target,
        question.call.tools,
        temperature=temperature,
        system=system,
        prompt=prompt,
        drop_message=drop_message,
        tools=tools,
    )
    set_values(body, set or {})
    return url, compact(body).encode()


def change_body(
    api: str,
    body: dict[str, Json],
    offered: Collection[ToolDefinition],
    *,
    temperature: float | None = None,
    system: str | None = None,
    prompt: str | None = None,
    drop_message: int | None = None,
    tools: Collection[str] | None = None,
) -> None:
    """Change the body of a request that offers these tools.

    Raises:
        UsageError: the format cannot express a change.
    """
    if drop_message is not None:
        without_message(api, body, drop_message)
    if temperature is not None:
        _set_temperature(api, body, temperature)
    if system is not None:
        set_system(api, body, system)
    if prompt is not None:
        set_prompt(api, body, prompt)
    if tools is not None:
        keep_tools(api, body, offered, tools)


def set_values(body: dict[str, Json], values: Mapping[str, object]) -> None:
    """Set values in a body, by JSON pointer.

    Raises:
        UsageError: there is no such place, or JSON cannot express a value.
    """
    for pointer, value in values.items():
        put(body, pointer, json.loads(compact(value)))


def _refuse_without_words(question: Question, changes: Mapping[str, object]) -> None:
    given = [name for name, value in changes.items() if value is not None]
    if given and question.call.operation == "embeddings":
        raise UsageError(f"{question.place} asks for embeddings, which have no {given[0]!r}")


def _refuse_in_session(question: Question, changes: Mapping[str, object]) -> None:
    given = [name for name, value in changes.items() if value is not None]
    if given and question.call.api in ("openai.realtime", "gemini.live"):
        raise UsageError(
            f"{question.place} is a message of a session, whose {given[0]!r} was set before. Change"
            " that message, or values of this one by their JSON pointers (--set)"
        )


def _body(request: Asked, question: Question) -> dict[str, Json]:
    if any(name.lower() == "content-encoding" for name, _ in request.headers):
        raise UsageError(
            f"cannot edit the body of {question.place}: it is compressed. Let the client send it"
            " uncompressed"
        )
    body = parse(request.body)
    if not isinstance(body, dict):
        raise UsageError(f"cannot edit the body of {question.place}: it is not a JSON object")
    return body


def _set_temperature(api: str, body: dict[str, Json], temperature: float) -> None:
    if api != "gemini":
        body["temperature"] = temperature
        return
    key = "generation_config" if "generation_config" in body else "generationConfig"
    body[key] = {**mapping(body.get(key)), "temperature": temperature}


def _set_model(url: str, question: Question, body: dict[str, Json], model: str) -> str:
    if question.call.api == "gemini":
        name = model.removeprefix("models/")
        for holder in (body, mapping(body.get("generateContentRequest"))):
            if "model" in holder:
                holder["model"] = f"models/{name}"
        for entry in mappings(body.get("requests")):
            entry["model"] = f"models/{name}"
        return _named_in(url, question, ("models", "tunedModels"), "models", name)
    collection = "deployments" if question.wire.after("deployments") else ""
    if question.wire.path.lower().endswith("rawpredict"):
        collection = "models"
    if "model" in body or not collection:
        body["model"] = model
    return _named_in(url, question, (collection,), collection, model) if collection else url


def _named_in(
    url: str, question: Question, collections: tuple[str, ...], collection: str, model: str
) -> str:
    parts = urlsplit(url)
    segments = parts.path.split("/")
    for index, segment in enumerate(segments[:-1]):
        if segment in collections:
            method = _METHOD.search(segments[index + 1])
            name = quote(model, safe="@") + (method[0] if method else "")
            renamed = [*segments[:index], collection, name, *segments[index + 2 :]]
            return url.replace(parts.path, "/".join(renamed), 1)
    raise UsageError(
        f"cannot change the model of {question.place}: its URL names an endpoint, not a model"
    )


def set_system(api: str, body: dict[str, Json], prompt: str) -> None:
    """Replace the system prompt, or add one."""
    _SYSTEMS[api](body, prompt)


def set_prompt(api: str, body: dict[str, Json], prompt: str) -> None:
    """Replace the last text of the user; attachments stay.

    Raises:
        UsageError: The request has no text of the user.
    """
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
    raise UsageError(f"cannot replace the prompt: the request has no user text in {key!r}")


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
    # Gemini's parts have no type; thoughts of the model are not the user's text.
    part = mapping(block)
    typed = part.get("type") in (None, "text", "input_text")
    return typed and isinstance(part.get("text"), str) and not part.get("thought")


def _lead(messages: list[Json], prompt: str) -> list[Json]:
    first = next(
        (
            n
            for n, message in enumerate(messages)
            if mapping(message).get("role") not in _INSTRUCTING
        ),
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
    # Keep the last block: its mark says up to where the provider caches the prompt.
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

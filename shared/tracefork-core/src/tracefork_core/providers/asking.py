"""Requests put otherwise: another model, other words, fewer messages or tools, any other value."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from urllib.parse import quote, urlsplit

from tracefork_core.errors import UsageError
from tracefork_core.providers.dropping import drop_message as without_message
from tracefork_core.providers.encoding import compact
from tracefork_core.providers.lenient import Json, mapping, mappings, parse
from tracefork_core.providers.offering import keep_tools
from tracefork_core.providers.pointer import put
from tracefork_core.providers.question import Asked, Question, read_question
from tracefork_core.providers.rewording import set_prompt, set_system

_METHOD = re.compile(r"(?::|%3a).*", re.IGNORECASE)


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
    """Give the URL and the body of a request with these changes, in the order they are named here.

    Only that `drop_message`, counted in the request as it was, comes first. `prompt` replaces the
    last text of the user's, `tools` are the names of those still offered, `set` puts values
    at JSON pointers. Whoever sends the body has to send its length.

    UsageError where the wire format is unknown, or has no place for a change.
    """
    question = read_question(request)
    body = _body(request, question)
    target = mapping(body.get("generateContentRequest")) or body
    api, url = question.call.api, request.url
    words = {"temperature": temperature, "system": system, "prompt": prompt}
    _refuse_without_words(question, {**words, "drop_message": drop_message, "tools": tools})
    if drop_message is not None:
        without_message(api, target, drop_message)
    if model is not None:
        url = _set_model(url, question, body, model)
    if temperature is not None:
        _set_temperature(api, target, temperature)
    if system is not None:
        set_system(api, target, system)
    if prompt is not None:
        set_prompt(api, target, prompt)
    if tools is not None:
        keep_tools(api, target, question.call.tools, tools)
    for pointer, value in (set or {}).items():
        put(body, pointer, json.loads(compact(value)))
    return url, compact(body).encode()


def _refuse_without_words(question: Question, changes: Mapping[str, object]) -> None:
    given = [name for name, value in changes.items() if value is not None]
    if given and question.call.operation == "embeddings":
        raise UsageError(f"{question.place} asks for embeddings, which know no {given[0]!r}")


def _body(request: Asked, question: Question) -> dict[str, Json]:
    if any(name.lower() == "content-encoding" for name, _ in request.headers):
        raise UsageError(
            f"the body of {question.place} is compressed, and its headers say so:"
            " have the client send it plain to edit it"
        )
    body = parse(request.body)
    if not isinstance(body, dict):
        raise UsageError(f"the body of {question.place} is no JSON object that could be edited")
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
        for one in mappings(body.get("requests")):
            one["model"] = f"models/{name}"
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
    for place, segment in enumerate(segments[:-1]):
        if segment in collections:
            method = _METHOD.search(segments[place + 1])
            name = quote(model, safe="@") + (method[0] if method else "")
            renamed = [*segments[:place], collection, name, *segments[place + 2 :]]
            return url.replace(parts.path, "/".join(renamed), 1)
    raise UsageError(
        f"{question.place} names no model but an endpoint of its own: its model cannot be changed"
    )

"""Read, answer and change a body of a known format that another transport carries.

Bedrock takes Claude's messages and OpenAI's chat completions in paths and frames of its own. An
adapter takes its transport off and gives the JSON, which then reads like a request to the provider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tracefork_core.errors import UsageError
from tracefork_core.providers.answering import FORMS, checked_call
from tracefork_core.providers.anthropic import decode_messages
from tracefork_core.providers.asking import change_body, set_values
from tracefork_core.providers.call import ModelCall
from tracefork_core.providers.draft import Draft
from tracefork_core.providers.formats import Wanted
from tracefork_core.providers.lenient import Json, compact, mapping, parse
from tracefork_core.providers.openai_chat import decode_chat
from tracefork_core.providers.question import Question
from tracefork_core.providers.sse import events
from tracefork_core.providers.wire import Wire

_READERS: dict[str, Callable[[Wire, str | None], ModelCall]] = {
    "anthropic.messages": decode_messages,
    "openai.chat_completions": decode_chat,
}


@dataclass(frozen=True, slots=True)
class Carried:
    """A request and its answer as JSON, without their transport.

    Attributes:
        request: the body of the request. Its model is at "model", as its provider wants it.
        status: the status of the answer; None without an answer.
        body: the answer, if it is whole.
        events: the answer, if it is a stream.
        streams: whether the caller wants a stream.
    """

    request: dict[str, Json]
    status: int | None = None
    body: dict[str, Json] = field(default_factory=dict)
    events: tuple[dict[str, Json], ...] = ()
    streams: bool = False


def read_as(api: str, carried: Carried, provider: str | None) -> ModelCall:
    """Read a body in the format `api`: "anthropic.messages" or "openai.chat_completions"."""
    return _READERS[api](_wire(carried), provider)


def answer_as(api: str, carried: Carried, wanted: Wanted) -> dict[str, Json]:
    """Return another answer to a request, as a whole document.

    Raises:
        UsageError: there is nothing to answer with, or the format cannot express it.
    """
    calls = tuple(checked_call(name, arguments) for name, arguments in wanted.tool_calls)
    if wanted.text is None and not calls:
        raise UsageError("an answer needs a text (which may be empty) or a tool call")
    recorded = read_as(api, carried, None)
    has_answer = carried.status is not None and recorded.error is None
    before = FORMS[api].fold(carried.events) if carried.events else carried.body
    kept: dict[str, Json] = {}
    if has_answer:
        kept |= {key: value for key, value in before.items() if value is not None}
    said = compact([carried.request, wanted.text, list(wanted.tool_calls)])
    seed = sha256(said.encode()).digest()
    meaning = recorded if has_answer else None
    return FORMS[api].document(
        Draft(_question(api, carried), wanted.text, calls, kept, meaning, seed)
    )


def events_as(api: str, carried: Carried, document: dict[str, Json]) -> list[dict[str, Json]]:
    """Return a whole answer as the events of a stream."""
    written = b"".join(FORMS[api].stream(_question(api, carried), document))
    read = [parse(event.data) for event in events(written)]
    return [mapping(event) for event in read if isinstance(event, dict)]


def change_as(api: str, carried: Carried, changes: Mapping[str, Any]) -> dict[str, Json]:
    """Return a request with changes, as `Format.reword` gets them. Its model stays.

    Raises:
        UsageError: the format cannot express a change.
    """
    body = mapping(parse(compact(carried.request)))
    rest = {name: value for name, value in changes.items() if name not in ("model", "values")}
    change_body(api, body, read_as(api, carried, None).tools, **rest)
    set_values(body, changes.get("values", {}))
    return body


def _wire(carried: Carried) -> Wire:
    request = carried.request | {"stream": True} if carried.streams else carried.request
    return Wire("", "", request, carried.status, carried.body, carried.events)


def _question(api: str, carried: Carried) -> Question:
    asked = Carried(carried.request, streams=carried.streams)
    return Question("POST", "", _wire(asked), read_as(api, asked, None))

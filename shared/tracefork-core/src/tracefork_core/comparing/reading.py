"""Read an exchange as it is compared: what was done, what was asked, what came of it.

Everything is plain JSON in which the run's own clock, and ids, are replaced (`incidental`). A
question to a model is taken apart, because most of it was already there in the question before:
its `tail` is what was said since the model last spoke.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from urllib.parse import urlsplit

import msgspec

from tracefork_core.comparing.incidental import Incidental
from tracefork_core.providers import Message, ModelCall, ToolCallPart, ToolUse, model_call, tool_use
from tracefork_core.providers.lenient import Json, is_bounded, parse
from tracefork_core.tape import Exchange
from tracefork_core.unpacking import decompress

_IDS = frozenset({"id", "response_id"})
"""Fields of parts and messages that hold ids alone."""
_MODEL = "assistant"


@dataclass(frozen=True)
class Spoken:
    """A message of a question. `key` is what is compared; `words` is what is shown."""

    role: str
    key: str
    words: str
    is_result: bool


@dataclass(frozen=True)
class Reading:
    """One exchange, ready to be compared.

    Attributes:
        exchange: the exchange.
        incidental: what the run put into its texts by chance; None where that counts, too.
        operation: "chat", the name of a tool, or "GET example.org/orders".
        fixed: what a question says besides its messages: model, system prompt, tools, settings; or
            what is asked of anything else.
        messages: the messages of a question to a model.
        answer: what was answered, by the name of its part: "answer", "call of search", "result".
        error: the error that it ended with; None if it ended well.
        said: the answer of a model as messages, as the next question repeats them.
        api: the wire format of a question to a model.
    """

    exchange: Exchange
    incidental: Incidental | None
    operation: str
    fixed: dict[str, Json]
    messages: tuple[Spoken, ...] = ()
    answer: dict[str, Json] = field(default_factory=dict)
    error: str | None = None
    said: tuple[Spoken, ...] = ()
    api: str = ""

    def plain(self, value: object) -> Json:
        """Return a value of the run as it is compared."""
        return _plain(value, self.incidental)

    @cached_property
    def tail(self) -> tuple[Spoken, ...]:
        """The messages since the model last spoke."""
        for i in range(len(self.messages) - 1, -1, -1):
            if self.messages[i].role == _MODEL:
                return self.messages[i + 1 :] or self.messages[i:]
        return self.messages

    @cached_property
    def question_key(self) -> str:
        """What two exchanges share if they ask the same, whatever was said before."""
        if self.messages:
            return as_key([self.operation, [one.key for one in self.tail]])
        return as_key([self.operation, self.fixed])

    @cached_property
    def key(self) -> str:
        """What two exchanges share if they ask the same and get the same answer."""
        return as_key([self.question_key, self.answer, self.error])


def read(exchange: Exchange, incidental: Incidental) -> Reading:
    """Read an exchange."""
    if exchange.has_bodies:
        call = model_call(exchange)
        if call is not None:
            return _of_model(exchange, call, incidental)
        use = tool_use(exchange)
        if use is not None:
            return _of_tool(exchange, use, incidental)
    return _of_other(exchange, incidental)


def read_exactly(exchange: Exchange) -> Reading:
    """Read an exchange as it lies on the tape, with headers, clock and ids."""
    asked: dict[str, Json] = {
        "url": exchange.request.url,
        "headers": dict[str, Json](exchange.request.headers),
    }
    answered: dict[str, Json] = {}
    if exchange.payload.response is not None:
        answered["status"] = exchange.status
        headers = exchange.payload.response.headers
        answered["headers"] = {name: value for name, value in headers if value is not None}
    if exchange.has_bodies:
        asked["request"] = _body(exchange.request_body, exchange.request_headers)
        answered["response"] = _body(exchange.response_body, exchange.response_headers)
    else:
        asked["request"] = exchange.request.body
    path = urlsplit(exchange.request.url)
    operation = f"{exchange.method} {path.netloc}{path.path}"
    problem = _problem(exchange, None)
    return Reading(exchange, None, operation, asked, (), answered, problem)


def _of_model(exchange: Exchange, call: ModelCall, incidental: Incidental) -> Reading:
    fixed: dict[str, Json] = {
        "model": call.request_model,
        "system prompt": "\n".join(_words(asdict(part)) for part in call.system),
        "tools offered": {
            tool.name: {"description": tool.description, "parameters": tool.parameters}
            for tool in call.tools
        },
        "settings": {"api": call.api, **call.parameters},
    }
    answer: dict[str, Json] = {}
    for message in call.output:
        for part in message.parts:
            document = _without_ids(asdict(part))
            if isinstance(part, ToolCallPart):
                name, value = f"call of {part.name}", document.get("arguments")
            else:
                name, value = "answer", _words(document)
            answer[_unused(name, answer)] = _plain(value, incidental)
    return Reading(
        exchange,
        incidental,
        call.operation,
        _without_empty(_plain(fixed, incidental)),
        tuple(_spoken(message, incidental) for message in call.input),
        answer,
        _problem(exchange, f"{call.error.type}: {call.error.message}" if call.error else None),
        tuple(_spoken(message, incidental) for message in call.output),
        call.api,
    )


def _spoken(message: Message, incidental: Incidental) -> Spoken:
    parts = [_plain(_without_ids(asdict(part)), incidental) for part in message.parts]
    words = "\n".join(_words(part) for part in parts if isinstance(part, dict))
    is_result = any(part.type == "tool_call_response" for part in message.parts)
    return Spoken(message.role, as_key([message.role, parts]), words, is_result)


def _of_tool(exchange: Exchange, use: ToolUse, incidental: Incidental) -> Reading:
    name = f"{use.place} ▸ {use.name}" if use.place else use.name
    result = _plain(use.result, incidental)
    error = str(result) if use.is_error else None
    answer: dict[str, Json] = {} if exchange.status is None else {"result": result}
    fixed: dict[str, Json] = {"arguments": _plain(use.arguments, incidental)}
    return Reading(exchange, incidental, name, fixed, (), answer, _problem(exchange, error))


def _of_other(exchange: Exchange, incidental: Incidental) -> Reading:
    parts = urlsplit(exchange.request.url)
    is_tool = exchange.aside.seam == "tool"
    name = f"{exchange.method} {parts.netloc}{parts.path}"
    if is_tool:
        name = exchange.url.removeprefix("tool:")
    asked, answered = ("arguments", "result") if is_tool else ("request", "response")
    fixed: dict[str, Json] = {}
    answer: dict[str, Json] = {}
    if parts.query and not is_tool:
        fixed["query"] = incidental.plain(parts.query)
    if not exchange.has_bodies:
        fixed[asked] = exchange.payload.request.body
        response = exchange.payload.response
        answer[answered] = response.body if response else None
    else:
        body = _body(exchange.request_body, exchange.request_headers)
        fixed[asked] = _plain(body, incidental)
        if exchange.status is not None:
            body = _body(exchange.response_body, exchange.response_headers)
            answer[answered] = _plain(body, incidental)
    error = str(exchange.status) if (exchange.status or 0) >= 400 else None
    problem = _problem(exchange, error)
    return Reading(exchange, incidental, name, _without_empty(fixed), (), answer, problem)


def _problem(exchange: Exchange, error: str | None) -> str | None:
    if exchange.failure is not None:
        return f"{exchange.failure.kind}: {exchange.failure.message}"
    if exchange.status is None:
        return "no answer"
    return error


def _body(body: bytes, headers: Sequence[tuple[str, str]]) -> Json:
    """Return a body as JSON if it is that, else as text; of a large or binary one, its size."""
    codings = ", ".join(value for name, value in headers if name.lower() == "content-encoding")
    plain = (decompress(body, codings) or body) if codings else body
    if not plain:
        return None
    if is_bounded(plain) and (value := parse(plain)) is not None:
        return value
    return plain.decode("utf-8", "backslashreplace")


def _plain(value: object, incidental: Incidental | None) -> Json:
    match value:
        case str():
            return incidental.plain(value) if incidental else value
        case bool() | None:
            return value
        case int() | float():
            return incidental.number(value) if incidental else value
        case dict():
            return {str(key): _plain(one, incidental) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one, incidental) for one in value]
        case _:
            return str(value)


def _without_ids(part: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in part.items() if name not in _IDS}


def _without_empty(value: Json) -> dict[str, Json]:
    document = value if isinstance(value, dict) else {}
    return {name: one for name, one in document.items() if one not in (None, "", {}, [])}


def _words(part: Mapping[str, object]) -> str:
    """Return what a part says, as text."""
    match part.get("type"):
        case "text" | "reasoning":
            return str(part.get("content", ""))
        case "tool_call":
            return f"▸ {part.get('name')} {_text(part.get('arguments'))}"
        case "tool_call_response":
            return _text(part.get("response"))
        case kind:
            rest = {name: one for name, one in part.items() if name != "type"}
            return f"[{kind}] {_text(rest)}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _unused(name: str, taken: Iterable[str]) -> str:
    """Return a name, with a number behind it if there are several such parts."""
    names = set(taken)
    if name not in names:
        return name
    return next(f"{name} {i}" for i in range(2, len(names) + 3) if f"{name} {i}" not in names)


def as_key(value: object) -> str:
    """Return a value as JSON text; the texts of two values are equal if the values are."""
    return msgspec.json.encode(value, order="sorted").decode()

"""What was said in a run, each piece once, numbered in the order in which it was first seen.

A model is sent the whole history with each question, so most of a question was said before. The
question of an exchange is `keep` pieces of the question that its conversation asked before, and the
numbers of the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

import msgspec

from tracefork_core.cli.display.account import model_name
from tracefork_core.cli.report.document import Message, MessagePart
from tracefork_core.providers import (
    BlobPart,
    ModelCall,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
)
from tracefork_core.providers import (
    Message as Spoken,
)
from tracefork_core.providers.remembered import added
from tracefork_core.tape import Exchange

_UTF8 = ("utf-8", "backslashreplace")
_SYSTEM = Spoken("system", ())
_Piece = tuple[Spoken, Part]
_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class Asked:
    """The question and the answer of one exchange, as numbers of messages."""

    base: int = -1
    keep: int = 0
    messages: list[int] = field(default_factory=list)
    answer: list[int] = field(default_factory=list)
    settings: str | None = None


@dataclass(slots=True)
class _Question:
    """The last question of a conversation: its exchange, and the numbers of its pieces."""

    n: int
    numbers: list[int]
    call: ModelCall


@dataclass
class Conversation:
    """Numbers messages. Give it each model call in order.

    Attributes:
        new: the messages that were new at the last call.
        count: how many messages have a number.
    """

    content: bool
    new: list[Message] = field(default_factory=list)
    count: int = 0
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _questions: dict[tuple[str, bytes], _Question] = field(default_factory=dict)

    def add(self, exchange: Exchange, call: ModelCall | None) -> Asked:
        """Number what an exchange says."""
        self.new = []
        if call is None:
            return Asked()
        first = next(_pieces(call), None)
        start = b"" if first is None else _encode([first[0].role, _shown(first[1])])
        key = exchange.lane, start
        before = self._questions.get(key)
        keep, new = _new(call, before)
        kept = [] if before is None else before.numbers[:keep]
        messages = [self._number(message, part, "in") for message, part in new]
        answer = [
            self._number(message, part, "out") for message in call.output for part in message.parts
        ]
        self._questions[key] = _Question(exchange.n, kept + messages, call)
        same = before is not None and _sets(before.call) == _sets(call)
        settings = None if same else _settings(call) if self.content else ""
        return Asked(-1 if before is None else before.n, keep, messages, answer, settings)

    def _number(self, message: Spoken, part: Part, side: str) -> int:
        shown = _shown(part)
        # Not by its name: a framework names the agent only where it repeats what it said.
        key = _encode((message.role, shown))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self.count
            self.count += 1
            if not self.content:
                shown = MessagePart(shown.type, "", shown.name, shown.id)
            self.new.append(Message(_who(message), "in" if side == "in" else "out", [shown]))
        return number


def asked(call: ModelCall) -> list[Message]:
    """Return the question of a model call, a message for each piece."""
    return [Message(_who(message), "in", [_shown(part)]) for message, part in _pieces(call)]


def answered(call: ModelCall) -> list[Message]:
    """Return the answer of a model call, a message for each piece."""
    return [
        Message(_who(message), "out", [_shown(part)])
        for message in call.output
        for part in message.parts
    ]


def _new(call: ModelCall, before: _Question | None) -> tuple[int, list[_Piece]]:
    """Return how many pieces of a question were in the one before, and the others."""
    if before is None:
        return 0, list(_pieces(call))
    if call.system == before.call.system:
        messages = added(before.call.input, call.input)
        if messages is not None:
            new = [(message, part) for message in messages for part in message.parts]
            return len(before.numbers), new
    pieces = list(_pieces(call))
    keep = _same(pieces, list(_pieces(before.call)))
    return keep, pieces[keep:]


def _pieces(call: ModelCall) -> Iterator[_Piece]:
    for part in call.system:
        yield _SYSTEM, part
    for message in call.input:
        for part in message.parts:
            yield message, part


def _same(pieces: Sequence[_Piece], before: Sequence[_Piece]) -> int:
    """Return how many pieces two questions share at their start."""
    for i, (one, other) in enumerate(zip(pieces, before, strict=False)):
        if one is not other and (one[1] != other[1] or one[0].role != other[0].role):
            return i
    return min(len(pieces), len(before))


def _who(message: Spoken) -> str:
    return _clean(message.name or message.role)


def _shown(part: Part) -> MessagePart:
    match part:
        case TextPart() | ReasoningPart():
            return MessagePart(part.type, _clean(part.content))
        case ToolCallPart():
            return MessagePart("tool_call", _text(part.arguments), part.name, part.id)
        case ToolCallResponsePart():
            return MessagePart("tool_result", _text(part.response), None, part.id)
        case BlobPart():
            size = f"{part.modality} {part.mime_type or ''}, {len(part.content)} characters"
            return MessagePart("blob", size)
        case _:
            fields = {name: value for name, value in asdict(part).items() if name != "type"}
            return MessagePart(part.type, _text(fields))


def _sets(call: ModelCall) -> tuple[object, ...]:
    return call.request_model, call.api, call.parameters, call.tools


def _settings(call: ModelCall) -> str:
    """Return the model, its settings and the tools offered, as JSON text."""
    tools = [asdict(tool) for tool in call.tools]
    return _text({"model": model_name(call), "api": call.api, **call.parameters, "tools": tools})


def _text(value: object) -> str:
    if isinstance(value, str):
        return _clean(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(*_UTF8).decode()


def _clean(text: str) -> str:
    """Spell lone surrogates, which are no Unicode, as escapes."""
    return text if text.isascii() else text.encode(*_UTF8).decode()

"""`tracefork show TAPE --transcript`: the conversation of a run, each message once.

A model is sent the whole history with each question. Here every message stands where it came first.
A call of a tool stands with its result, on one line.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.account import model_name
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.display.timeline import step_words
from tracefork_core.providers import (
    Message,
    ModelCall,
    Part,
    ToolCallPart,
    ToolCallResponsePart,
    model_call,
)
from tracefork_core.tape import Exchange, Tape

if TYPE_CHECKING:
    from rich.console import Console

_LABEL = 11
_WIDE = 20
"""The least width of a text."""


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the conversation.

    Attributes:
        n: the exchange that it stands in first.
        who: the role or the name of the speaker; "tool" for a call with its result.
        text: what was said.
        step: the step of the exchange.
    """

    n: int
    who: str
    text: str
    step: str


@dataclass(slots=True)
class _Conversation:
    """What was said so far, and the calls of tools whose results have not come yet."""

    seen: set[str] = field(default_factory=set)
    calls: dict[str, tuple[int, str, ToolCallPart]] = field(default_factory=dict)

    def heard(self, exchange: Exchange, call: ModelCall) -> Iterator[Said]:
        """Yield what an exchange adds, and why it has no answer."""
        n, step, failure = exchange.n, step_words(exchange), exchange.failure
        asked = [Message("system", call.system)] if call.system else []
        for message in (*asked, *call.input, *call.output):
            for part in message.parts:
                yield from self._part(n, step, message, part)
        if call.error is not None:
            yield Said(n, "error", f"{call.error.type}: {call.error.message}", step)
        if failure is not None:
            yield Said(n, "error", f"{failure.kind}: {failure.message}", step)

    def left(self) -> Iterator[Said]:
        """Yield the calls of tools whose results were sent to no model."""
        for n, step, part in self.calls.values():
            yield Said(n, "tool", _called(part), step)
        self.calls.clear()

    def _part(self, n: int, step: str, message: Message, part: Part) -> Iterator[Said]:
        key = json.dumps([_who(message), asdict(part)], sort_keys=True, default=str)
        if key in self.seen:
            return
        self.seen.add(key)
        if isinstance(part, ToolCallPart):
            self.calls[part.id or key] = n, step, part
        elif isinstance(part, ToolCallResponsePart):
            began = self.calls.pop(part.id or "", None)
            asked = _called(began[2]) if began else "?"
            answer = _text(part.response).rstrip()
            yield Said(n, "tool", f"{asked} → {answer}", began[1] if began else step)
        elif text := _words(part).strip():
            yield Said(n, _who(message), text, step)


def conversation(tape: Tape) -> Iterator[Said]:
    """Yield what was said in a run, in its order."""
    held = _Conversation()
    for exchange in tape.exchanges:
        call = model_call(exchange)
        if call is not None and not exchange.is_auxiliary:
            yield from held.heard(exchange, call)
    yield from held.left()


def print_transcript(console: Console, tape: Tape, shown: str) -> None:
    """Print the conversation; a heading wherever another step speaks."""
    from rich.text import Text

    models = dict.fromkeys(
        model_name(call) for one in tape.exchanges if (call := model_call(one)) is not None
    )
    count = figures.several(len(tape.exchanges), "exchange")
    named = f" · {', '.join(models)}" if models else ""
    console.print(f"{printable(shown)} · {count}{named}", style=screen.STRONG, soft_wrap=True)
    step, n = None, -1
    for said in conversation(tape):
        if said.step != step:
            console.print(f"\n{printable(said.step)}", style=screen.STRONG, soft_wrap=True)
        step = said.step
        style = screen.BAD if said.who == "error" else "default"
        width = max(_WIDE, console.width - _LABEL)
        lines = Text(printable(said.text, lines=True)).wrap(console, width)
        for i, line in enumerate(lines):
            label = "" if i else f"{printable(said.who):<{_LABEL - 1}.{_LABEL - 1}} "
            text = Text(f"{label:<{_LABEL}}", screen.DIM).append(line.plain.rstrip(), style)
            console.print(text, soft_wrap=True)
        n = said.n
    if n < 0:
        console.print("no call of a model is on this tape")
    if tape.exchanges:
        following = f"next: tracefork show {shlex.quote(shown)} N"
        console.print(following, style=screen.DIM, soft_wrap=True)


def document(tape: Tape) -> dict[str, object]:
    """Return the conversation as JSON-able values."""
    return {"tape": str(tape.path), "transcript": [asdict(said) for said in conversation(tape)]}


def _who(message: Message) -> str:
    return message.name or message.role


def _called(part: ToolCallPart) -> str:
    return f"▸ {part.name} {_text(part.arguments)}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _words(part: Part) -> str:
    match part.type:
        case "text":
            return str(getattr(part, "content", ""))
        case "blob" | "uri" | "file":
            modality = getattr(part, "modality", part.type)
            return f"[{modality} {getattr(part, 'mime_type', None) or figures.UNKNOWN}]"
        case kind:
            fields = {name: value for name, value in asdict(part).items() if name != "type"}
            return f"[{kind}] {_text(next(iter(fields.values()), ''))}"

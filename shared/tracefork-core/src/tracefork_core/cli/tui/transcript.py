"""The conversation at one exchange: what was said before is folded and counted, what is new marked.

It reads the exchange and the one that its conversation asked before, so the length of the run does
not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.page import print_page
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.report.conversation import answered, asked
from tracefork_core.cli.tui.captured import captured
from tracefork_core.cli.tui.open_run import OpenRun
from tracefork_core.providers import model_call
from tracefork_core.tape import Exchange

if TYPE_CHECKING:
    from rich.text import Text

    from tracefork_core.cli.report.document import Message, MessagePart

_LABEL = 14
_NARROWEST = 20
_FAR = 64
"""How many exchanges of the same lane are searched for the question before."""
_MOST = 200
"""How many messages of the history are shown at once."""
_SIGNS = {"tool_call": "▸ ", "tool_result": "▹ "}


def transcript(run: OpenRun, n: int, width: int, *, history: bool) -> list[Text]:
    """Return the conversation at an exchange; one that calls no model is shown in full instead."""
    exchange = run.exchanges[n]
    call = model_call(exchange)
    if call is None:
        return exchange_in_full(run, n, width)
    question, answer = asked(call), answered(call)
    before, is_new = _told_before(run.exchanges, exchange, question)
    kept = [message for message, new in zip(question, is_new, strict=True) if not new]
    new = [message for message, new in zip(question, is_new, strict=True) if new]
    lines: list[Text] = []
    if kept:
        told = figures.several(len(kept), "message")
        fold = "folds" if history else "shows"
        lines += _note(f"··· {told} from before, as in exchange {before} (h {fold} them)")
        if history:
            lines += _history(kept, width)
    for message in new:
        lines += _message("+", message, width)
    if not new:
        lines += _note("nothing new was asked")
    for message in answer:
        lines += _message("→", message, width)
    if exchange.failure is not None:
        lines += _labelled("✗ error", f"{exchange.failure.kind}: {exchange.failure.message}", width)
    elif call.error is not None:
        lines += _labelled("✗ error", f"{call.error.type}: {call.error.message}", width)
    elif not answer:
        lines += _note("no answer")
    count = figures.several(len(new), "new message")
    return [*lines, *_note(f"+ {count} · → the answer · {run.show(n)}")]


def exchange_in_full(run: OpenRun, n: int, width: int) -> list[Text]:
    """Return what `tracefork show TAPE N` prints."""

    def show(console: object) -> None:
        print_page(console, run.tape, run.exchanges[n], run.shown, with_headers=False)  # type: ignore[arg-type]

    return captured(width, show)


def question_before(exchanges: Sequence[Exchange], exchange: Exchange) -> Iterator[Exchange]:
    """Yield the earlier exchanges of the lane of an exchange, the nearest first."""
    found = 0
    for other in reversed(exchanges[: exchange.n]):
        if other.lane == exchange.lane and not other.is_auxiliary:
            yield other
            found += 1
        if found == _FAR:
            return


def _told_before(
    exchanges: Sequence[Exchange], exchange: Exchange, question: Sequence[Message]
) -> tuple[int, list[bool]]:
    """Return the exchange that asked before, and which messages are new since it was answered.

    It is the nearest one of the lane that has a message of this question: a history may be cut at
    its beginning.
    """
    for other in question_before(exchanges, exchange):
        earlier = model_call(other)
        if earlier is None:
            continue
        said = Counter(map(_key, [*asked(earlier), *answered(earlier)]))
        is_new = []
        for message in question:
            key = _key(message)
            is_new.append(not said[key])
            said[key] -= 1 if said[key] else 0
        if not all(is_new):
            return other.n, is_new
    return -1, [True] * len(question)


def _key(message: Message) -> tuple[str | None, ...]:
    return tuple(text for part in message.parts for text in (part.type, part.text, part.name))


def _history(messages: Sequence[Message], width: int) -> list[Text]:
    left = len(messages) - _MOST
    lines = _note(f"··· {figures.several(left, 'earlier message')} not shown") if left > 0 else []
    for message in messages[-_MOST:]:
        lines += _message("=", message, width)
    return lines


def _message(sign: str, message: Message, width: int) -> list[Text]:
    lines: list[Text] = []
    for part in message.parts:
        lines += _labelled(f"{sign} {message.who}", _words(part), width)
    return lines


def _words(part: MessagePart) -> str:
    if part.type in _SIGNS:
        name = f"{part.name} " if part.name else ""
        return f"{_SIGNS[part.type]}{name}{part.text}"
    return part.text if part.type == "text" else f"[{part.type}] {part.text}"


def _labelled(label: str, words: str, width: int) -> list[Text]:
    from rich.text import Text

    style = {"+": screen.GOOD, "✗": screen.BAD, "=": screen.DIM}.get(label[0], "default")
    name = f"{printable(label):<{_LABEL - 1}.{_LABEL - 1}} "
    lines = []
    for i, line in enumerate(
        _wrapped(printable(words, lines=True), max(_NARROWEST, width - _LABEL))
    ):
        gutter = name if i == 0 else f"{label[0] if label[0] in '+=' else ' ':<{_LABEL}}"
        lines.append(Text(gutter, screen.DIM, end="").append(line, style))
    return lines


def _wrapped(words: str, width: int) -> list[str]:
    from rich.text import Text

    from tracefork_core.cli.display.console import PrintableConsole

    console = PrintableConsole(width=width)
    return [line.plain.rstrip() for line in Text(words).wrap(console, width)]


def _note(words: str) -> list[Text]:
    from rich.text import Text

    return [Text(printable(words), screen.DIM, end="")]

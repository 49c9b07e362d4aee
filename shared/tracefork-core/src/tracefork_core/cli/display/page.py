"""One exchange in full: its request, its response, and the facts about both."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.account import model_name
from tracefork_core.cli.display.text import LONGEST, printable, readable, shortened
from tracefork_core.cli.display.timeline import step_words, summary
from tracefork_core.cli.display.tool_call import in_words, is_tool
from tracefork_core.exchange.contract import AFTER
from tracefork_core.providers import ModelCall, is_bounded, model_call
from tracefork_core.providers.prices import price_of
from tracefork_core.run.untaped import untaped_calls
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.imported import GRADES, Grade
from tracefork_core.unpacking import decompress

if TYPE_CHECKING:
    from rich.console import Console

    from tracefork_core.providers import Message, Part
    from tracefork_core.tape.event import SideEffects

Headers = Sequence[tuple[str, str]]
_LABEL = 13
_SHOWN_LINES = 12
_SHOWN_BYTES = 4_000
_SHOWN_HEADERS = 100
_SHOWN_FILES = 8


def print_page(
    console: Console, tape: Tape, exchange: Exchange, shown: str, *, with_headers: bool
) -> None:
    """Print an exchange for people, with its headers if they are asked for."""
    call = model_call(exchange)
    head = f"exchange {exchange.n} of {len(tape.exchanges)} · {shown}"
    console.print(printable(head), style=screen.STRONG)
    console.print(f"  {printable(f'{exchange.method} {exchange.url}')}", soft_wrap=True)
    for label, value in (
        *_facts(exchange, call),
        *_joined(tape, exchange),
        *_graded(tape, exchange),
    ):
        _line(console, label, value)
    if untaped := _untaped(tape, exchange):
        _line(console, "not taped", f"{', '.join(untaped)}: ran in your process, not on the tape")
    if call:
        _print_call(console, call)
    else:
        labels = ("arguments", "result") if is_tool(exchange) else ("request", "response")
        for label, (_, body, headers) in zip(labels, _bodies(exchange), strict=False):
            _print_body(console, label, in_words(exchange, _plain(body, headers)))
    if with_headers:
        _print_headers(console, "request headers", exchange.request_headers)
        _print_headers(console, "response headers", exchange.response_headers)
    if exchange.has_bodies:
        again = f"tracefork show {shlex.quote(shown)} {exchange.n}"
        more = f"{again} --raw" if with_headers else f"{again} --headers · {again} --raw"
        console.print(f"  next: {more}", style=screen.DIM, soft_wrap=True)
    else:
        console.print("  bodies: hashes only (mode metadata)", style=screen.DIM)


def document(tape: Tape, exchange: Exchange) -> dict[str, object]:
    """Return an exchange as JSON-able values."""
    call, failure, bodies = model_call(exchange), exchange.failure, _bodies(exchange)
    return {
        "tape": str(tape.path),
        "of": len(tape.exchanges),
        **summary(tape, exchange, call),
        "reason": exchange.reason,
        "message": failure.message if failure else None,
        "seam": exchange.aside.seam,
        "effect": exchange.aside.effect,
        "unsearched": exchange.aside.unsearched,
        "chunks": len(exchange.aside.sizes),
        "request_headers": [list(pair) for pair in exchange.request_headers],
        "response_headers": [list(pair) for pair in exchange.response_headers],
        **{f"{label}_body": _value(_plain(body, headers)) for label, body, headers in bodies},
        "call": asdict(call) if call else None,
        "untaped": _untaped(tape, exchange),
        "grade": _grade(tape, exchange),
    }


def _grade(tape: Tape, exchange: Exchange) -> Grade | None:
    """Return how much of an exchange its file held, if it was imported."""
    imported, origin = tape.imported, tape.origin
    is_own = origin is not None and exchange.n >= origin.at
    return None if imported is None or is_own else imported.grade_of(exchange.n)


def _graded(tape: Tape, exchange: Exchange) -> Iterable[tuple[str, str]]:
    if (grade := _grade(tape, exchange)) is not None:
        yield "imported", GRADES[grade]


def _untaped(tape: Tape, exchange: Exchange) -> list[str]:
    """Return the tools that the answer called and that ran without being on the tape."""
    return [part.name for one, part in untaped_calls(tape) if one.n == exchange.n]


def _joined(tape: Tape, exchange: Exchange) -> Iterable[tuple[str, str]]:
    """Yield what the steps of an exchange came after, and whether they join branches."""
    names = {step.id: step.name for step in tape.steps}
    for step in exchange.steps:
        after = step.detail.get(AFTER)
        if isinstance(after, list):
            waited = ", ".join(names.get(str(one), str(one)) for one in after)
            label = "joins" if len(after) > 1 else "after"
            yield label, printable(f"{step.name}, after {waited}")


def _facts(exchange: Exchange, call: ModelCall | None) -> Iterable[tuple[str, str]]:
    aside, failure = exchange.aside, exchange.failure
    if failure:
        yield "failure", f"{failure.kind}: {failure.message}"
    if exchange.status is not None:
        yield "status", f"{exchange.status} {exchange.reason} · {exchange.end}"
    else:
        yield "status", f"no answer · {exchange.end}"
    if aside.answered:
        yield "answered", f"{aside.answered}, instead of exchange {aside.place}"
    yield "step", step_words(exchange)
    yield "lane", f"{exchange.lane} · seam {aside.seam}"
    if exchange.is_auxiliary:
        yield "auxiliary", "token count or telemetry; a replay may skip it"
    if is_tool(exchange):
        yield "effect", aside.effect or "unknown, treated as a write"
        if aside.side_effects is not None:
            yield "changed", _changed(aside.side_effects)
    if aside.unsearched:
        bodies = " and ".join(aside.unsearched)
        yield "secrets", f"{bodies} not searched: unpacking passed a limit or failed"
    first = figures.milliseconds(aside.first_byte)
    chunks = figures.several(len(aside.sizes), "chunk")
    yield "took", f"{figures.milliseconds(aside.took)} ms, head after {first} ms · {chunks}"
    if call is None:
        return
    is_other = call.response_model not in (None, call.request_model)
    answered = f", answered {call.response_model}" if is_other else ""
    stream = " · stream" if call.stream else ""
    yield "model", f"{model_name(call)}{answered} · {call.api}{stream}"
    if usage := call.usage:
        cached = f" ({figures.tokens(usage.cache_read_input_tokens)} from cache)"
        tokens = f"{figures.tokens(usage.input_tokens)} in"
        tokens += cached if usage.cache_read_input_tokens else ""
        tokens += f" → {figures.tokens(usage.output_tokens)} out"
        price = price_of(exchange, call)
        yield "tokens", tokens if price is None else f"{tokens} · {figures.money(price)}"
    if call.finish_reasons:
        yield "finished", ", ".join(call.finish_reasons)
    if call.error:
        yield "error", f"{call.error.type}: {call.error.message or figures.UNKNOWN}"


def _changed(effects: SideEffects) -> str:
    """Return which files a tool changed, and what may have changed others."""
    paths = [file.path for file in effects.files]
    names = ", ".join(paths[:_SHOWN_FILES]) or "no file"
    more = len(paths) - _SHOWN_FILES + effects.more
    words = f"{names} and {more} more" if more > 0 else names
    return f"{words} (not seen: {', '.join(effects.unseen)})" if effects.unseen else words


def _print_call(console: Console, call: ModelCall) -> None:
    if call.tools:
        _line(console, "tools", ", ".join(tool.name for tool in call.tools))
    _print_parts(console, "system", call.system)
    for message in call.input:
        _print_message(console, message)
    for message in call.output:
        _print_message(console, message, mark="← ")


def _print_message(console: Console, message: Message, mark: str = "") -> None:
    _print_parts(console, mark + (message.name or message.role), message.parts)


def _print_parts(console: Console, label: str, parts: Sequence[Part]) -> None:
    for part in parts:
        _block(console, label, _part_words(part))


def _part_words(part: Part) -> str:
    match part.type:
        case "text":
            return str(getattr(part, "content", ""))
        case "tool_call":
            return f"▸ {getattr(part, 'name', '')} {_compact(getattr(part, 'arguments', None))}"
        case "tool_call_response":
            return f"▹ {_compact(getattr(part, 'response', None))}"
        case "blob":
            mime = getattr(part, "mime_type", None) or figures.UNKNOWN
            return f"[{getattr(part, 'modality', 'blob')} {mime}]"
        case kind:
            fields = {name: value for name, value in asdict(part).items() if name != "type"}
            return f"[{kind}] {_compact(fields)}"


def _compact(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _print_body(console: Console, label: str, body: bytes) -> None:
    if body:
        _block(console, label, readable(body[:_SHOWN_BYTES], lines=True), len(body))


def _print_headers(console: Console, title: str, headers: Headers) -> None:
    if headers:
        console.print(f"  {title}", style=screen.DIM)
    for name, value in headers[:_SHOWN_HEADERS]:
        line = shortened(f"    {printable(name)}: {printable(value)}", console.width)
        console.print(line, soft_wrap=True)
    if (left := len(headers) - _SHOWN_HEADERS) > 0:
        words = f"{figures.several(left, 'more header')}; all of them: --json"
        console.print(f"    …, {words}", style=screen.DIM)


def _line(console: Console, label: str, value: str) -> None:
    from rich.text import Text

    text = Text(f"  {label:<{_LABEL}}", screen.DIM).append(printable(value), "default")
    console.print(text, soft_wrap=True)


def _block(console: Console, label: str, value: str, size: int | None = None) -> None:
    """Print a text under one label, wrapped, with the size of what was cut."""
    from rich.text import Text

    width = max(20, console.width - _LABEL - 2)
    wrapped = Text(printable(value, lines=True)).wrap(console, width)
    for i, line in enumerate(wrapped[:_SHOWN_LINES]):
        name = printable(label) if i == 0 else ""
        if len(name) >= _LABEL:  # A long name of an agent has a line of its own.
            console.print(Text(f"  {name}", screen.DIM), soft_wrap=True)
            name = ""
        text = Text(f"  {name:<{_LABEL}}", screen.DIM).append(line.plain.rstrip(), "default")
        console.print(text, soft_wrap=True)
    left = len(wrapped) - _SHOWN_LINES
    size = len(value) if size is None and len(value) > LONGEST else size
    if left > 0 or (size or 0) > _SHOWN_BYTES:
        total = f" of {figures.size(size)}" if size else f", {figures.several(left, 'more line')}"
        console.print(f"  {'':<{_LABEL}}…{total}; full text: --raw or --json", style=screen.DIM)


def _bodies(exchange: Exchange) -> list[tuple[str, bytes, Headers]]:
    if not exchange.has_bodies:
        return []
    return [
        ("request", exchange.request_body, exchange.request_headers),
        ("response", exchange.response_body, exchange.response_headers),
    ]


def _plain(body: bytes, headers: Headers) -> bytes:
    """Decode the content encoding of a body; return it unchanged if that fails."""
    encodings = [value for name, value in headers if name.lower() == "content-encoding"]
    plain = decompress(body, ", ".join(encodings)) if encodings else None
    return body if plain is None else plain


def _value(body: bytes) -> object:
    """Return a body as JSON where it is JSON, as text where it is text, else its size.

    Of a body that would take much memory as JSON, return the size too; `--raw` writes all of it.
    """
    if not is_bounded(body):
        return {"bytes": len(body)}
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return {"bytes": len(body)}
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

"""Write a run as text that two recordings of the same run share: for git, and for reviews.

Lanes come in the order of their names, because the order in which they took turns is chance. Each
message stands once, where it came in first. Clock and ids are marks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tracefork_core.comparing.incidental import Incidental
from tracefork_core.comparing.judge import label
from tracefork_core.comparing.reading import Reading, as_key, read
from tracefork_core.printable import printable
from tracefork_core.providers.lenient import Json
from tracefork_core.tape import Exchange, Tape


def text_form(tape: Tape) -> Iterator[str]:
    """Yield the lines of a run, without line ends.

    Raises:
        TapeError: the tape is corrupt.
    """
    incidental = Incidental(tape)
    lanes: dict[str, list[Exchange]] = {}
    for exchange in tape.exchanges:
        if not exchange.is_auxiliary:
            lanes.setdefault(exchange.lane, []).append(exchange)
    receipt = tape.receipt
    yield f"outcome {printable(receipt.outcome) if receipt else 'cut off'}"
    for lane in sorted(lanes):
        yield ""
        yield f"lane {printable(lane)}"
        told: dict[str, str] = {}
        heard: set[str] = set()
        for i, exchange in enumerate(lanes[lane]):
            reading = read(exchange, incidental)
            step = " ▸ ".join(exchange.step_path)
            yield ""
            yield printable(f"{i} {reading.operation}" + (f" · {step}" if step else ""))
            for name, value in _asked(reading, told, heard):
                yield from _lines(name, value)
            for name, value in reading.answer.items():
                yield from _lines(f"→ {name}", value)
            if reading.error is not None:
                yield from _lines("→ error", reading.error)


def _asked(reading: Reading, told: dict[str, str], heard: set[str]) -> Iterator[tuple[str, Json]]:
    """Yield what a question says that its lane has not said before."""
    for name, value in reading.fixed.items():
        key = as_key(value)
        if not reading.messages or told.get(name) != key:
            yield name, value
        told[name] = key
    for message in reading.messages:
        if message.key not in heard:
            yield label(message), message.words
    heard.update(message.key for message in (*reading.messages, *reading.said))


def _lines(name: str, value: Json) -> Iterator[str]:
    is_text = isinstance(value, str)
    text = str(value) if is_text else json.dumps(value, ensure_ascii=False, sort_keys=True)
    lines = printable(text, lines=True).split("\n")
    if len(lines) == 1:
        yield f"  {printable(name)}: {lines[0]}".rstrip()
        return
    yield f"  {printable(name)}:"
    yield from (f"    {line}".rstrip() for line in lines)

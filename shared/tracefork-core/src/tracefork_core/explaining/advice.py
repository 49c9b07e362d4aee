"""Say what a differing value looks like and what to do about it.

`ADVICE` is the one table: it makes both the hints on a divergence card and the causes that
`tracefork calibrate` prints. Where the boundary guard gives the same advice about a function, the
text is the guard's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from tracefork_core.chance.guard.known_sources import DOORS
from tracefork_core.exchange.contract import PROXY
from tracefork_core.explaining.patterns import Kind, is_reordered, kind_of
from tracefork_core.matching.comparable import Form
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.environment import hash_seed, timezone
from tracefork_core.tape.json_pointer import child, parts

FUNCTION_FIXES = {door.label: door.fix for door in DOORS}
"""What the boundary guard advises to do instead of calling a function."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to say about one kind of value.

    Attributes:
        looks: a phrase for such a value.
        fix: how to keep it from differing.
        switch: the source that puts such values on a tape; None if no recording can.
    """

    looks: str
    fix: str
    switch: Literal["clock", "entropy"] | None = None


ADVICE: dict[Kind, Advice] = {
    "clock": Advice(
        "a date or time",
        "Read it with datetime.now() or run.nondet.now(). Leave out times of files and other "
        "programs.",
        "clock",
    ),
    "uuid": Advice("a UUID", FUNCTION_FIXES["fastuuid.uuid_v1mc"], "entropy"),
    "token": Advice("a random token", FUNCTION_FIXES["ssl.RAND_bytes"], "entropy"),
    "random": Advice(
        "a random or measured number",
        "Use random or run.nondet.random(). Leave out what a timer measured.",
        "entropy",
    ),
    "process": Advice("the process id", "Leave it out of the request."),
    "address": Advice(
        "a memory address", "Give the class a __repr__, or leave the object out of the request."
    ),
}
"""What to say about each kind of value; `order` depends on both processes, see `hints`."""

_SOURCES = {"clock": "the clock", "entropy": "randomness"}
_ORDER = "the same words in another order:"
# Endpoints whose URL, not a flag in the body, asks for a stream.
_STREAMS = (
    ":streamGenerateContent",
    ":streamRawPredict",
    "/converse-stream",
    "/invoke-with-response-stream",
)
_STREAM_FLAG = {
    True: "the stream flag: the response was recorded whole and is now requested as a stream. Run "
    "the agent as it was recorded, or turn streaming off.",
    False: "the stream flag: the response was recorded as a stream and is now requested whole. Run "
    "the agent as it was recorded, or turn streaming on.",
}


def hints(tape: Tape, recorded: Exchange, form: Form, pointer: str | None) -> tuple[str, ...]:
    """Return likely reasons why a request differs from a recorded one; often there are none.

    `pointer` is where they differ first: a JSON pointer into the body, "body" or "url".
    """
    before, now = _document(recorded.request_body), _document(form.body)
    kind: Kind | None = None
    if pointer == "url":
        kind = kind_of(recorded.request.url, form.record.url)
    elif pointer == "body":
        kind = kind_of(before, now)
    elif pointer is not None and pointer.startswith("/"):
        kind = kind_of(_at(before, pointer), _at(now, pointer))
        if kind is None and is_reordered(_text(before), _text(now)):
            kind = "order"  # A single value does not show that it changed places with others.
    streams = _streams(form.record.url, now)
    flag = [_STREAM_FLAG[streams]] if streams != _streams(recorded.request.url, before) else []
    return (*flag, *([_hint(tape, kind, recorded)] if kind else []))


def differs_at_random(recorded: Exchange, form: Form) -> bool:
    """Return whether two requests differ only in random values of their bodies."""
    if recorded.request.url != form.record.url:
        return False
    kind = kind_of(_document(recorded.request_body), _document(form.body))
    return kind in ADVICE and ADVICE[kind].switch == "entropy"


def _hint(tape: Tape, kind: Kind, recorded: Exchange) -> str:
    if recorded.aside.seam == PROXY and kind in ADVICE:
        return (
            f"{ADVICE[kind].looks}: it comes from a program behind the proxy, so the tape does not "
            "hold it. Leave it out of the comparison with --ignore."
        )
    if kind == "order":
        return _order_hint(tape.environment.hash_seed if tape.environment else None, hash_seed())
    advice = ADVICE[kind]
    if (switch := advice.switch) is None:
        return f"{advice.looks}: it differs in every process. {advice.fix}"
    source, option = _SOURCES[switch], f"--no-{switch}"
    chance = tape.chance
    if switch not in (chance.ambient or ()) and all(r.source != switch for r in chance.reads):
        return (
            f"{advice.looks}: {source} is not on this tape (recorded with {option}). Record again "
            "without that option."
        )
    on_tape = f"{advice.looks}: {source} is on this tape, "
    if switch == "entropy":
        return (
            f"{on_tape}so this value has another source: a generator made before the run, C code, "
            "another program, a file, or a value drawn again after resuming from a checkpoint. Or "
            f"the replay runs with {option}."
        )
    if zones := _timezones(tape):
        return (
            f"{on_tape}but the timezone differs ({zones[0]} when recorded, {zones[1]} now). Or "
            "this value comes from C code, another program or a file, or the replay runs with "
            f"{option}."
        )
    return (
        f"{on_tape}so this value has another source: C code, another program or a file. Or the "
        f"replay runs with {option}."
    )


def _order_hint(then: str | None, now: str | None) -> str:
    """Explain a changed order by the hash seeds of both processes; None stands for random."""
    if then is None or now is None:
        when = "when this was recorded" if then is None else "in this process"
        return (
            f"{_ORDER} a set? Hashes were random {when}. Sort it, use the tracefork command, or "
            "start Python with PYTHONHASHSEED=0 both times."
        )
    if then != now:
        return (
            f"{_ORDER} a set? PYTHONHASHSEED was {then} when this was recorded and is {now} now. "
            "Sort it, or start Python with the same PYTHONHASHSEED."
        )
    return f"{_ORDER} a directory listing, or results in order of arrival? Sort them."


def _timezones(tape: Tape) -> tuple[str, str] | None:
    """Return the timezones of both runs if they are known and differ."""
    then = next((seen.value for seen in tape.surroundings if seen.kind == "timezone"), None)
    now = timezone(tape.environment.started / 1e9) if tape.environment else None
    return None if then is None or now is None or then == now else (then, now)


def _streams(url: str, document: object) -> bool:
    """Return whether a request to a model asks for a stream."""
    if isinstance(document, dict) and document.get("stream") is True:
        return True
    return url.partition("?")[0].endswith(_STREAMS)


def _document(body: bytes) -> object:
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _at(document: object, pointer: str) -> object:
    """Return the value at a JSON pointer, or None."""
    for part in parts(pointer):
        document = child(document, part)
    return document


def _text(document: object) -> str:
    return document if isinstance(document, str) else json.dumps(document, ensure_ascii=False)

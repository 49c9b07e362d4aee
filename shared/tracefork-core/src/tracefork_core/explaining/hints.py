"""What a divergence card says about where a difference may come from, and what to do about it."""

from __future__ import annotations

import json

from tracefork_core.explaining.provenance import Source, is_reordered, source_of
from tracefork_core.matching.comparable import Form
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.environment import hash_seed, timezone
from tracefork_core.tape.json_pointer import child, parts

_LOOKS = {
    "clock": "a read of the clock",
    "uuid": "a UUID, drawn at random",
    "token": "a token, drawn at random",
    "random": "a number drawn at random, or measured",
}
_DRAWN = ("uuid", "token", "random")
_ADDRESS = (
    "the address of an object (of its repr?): another one in each process; leave it out of what is "
    "sent, or ignore the place"
)
_PROCESS = (
    "the id of the process: another one in each run; leave it out of what is sent, or ignore the "
    "place"
)
_WAYS_OF_TIME = "came from elsewhere (C code, another program, a file)"
_WAYS_OF_CHANCE = (
    "came from elsewhere (a generator made before the run, C code, another program, a file), was "
    "drawn anew after a checkpoint that it resumed"
)
_ORDER = "the same words in another order:"
# Providers that have an address of its own for a streamed answer, and no flag in the body.
_STREAMS = (
    ":streamGenerateContent",
    ":streamRawPredict",
    "/converse-stream",
    "/invoke-with-response-stream",
)
_STREAM_FLAG = {
    True: "the stream flag: the answer came whole when this was recorded and is asked for as a "
    "stream now; run it the way it was recorded, or keep the model from streaming",
    False: "the stream flag: the answer was streamed when this was recorded and is asked for whole "
    "now; run it the way it was recorded, or let the model stream",
}


def hints(tape: Tape, recorded: Exchange, form: Form, pointer: str | None) -> tuple[str, ...]:
    """Return what is likely to have made two requests differ; often nothing is.

    `pointer` is where they first differ: a place in the body, "body" or "url".
    """
    before, now = _document(recorded.request_body), _document(form.body)
    source: Source | None = None
    if pointer == "url":
        source = source_of(recorded.request.url, form.record.url)
    elif pointer == "body":
        source = source_of(before, now)
    elif pointer is not None and pointer.startswith("/"):
        source = source_of(_at(before, pointer), _at(now, pointer))
        if source is None and is_reordered(_words(before), _words(now)):
            source = "order"  # A value alone does not show that it changed places with others.
    streams = _streams(form.record.url, now)
    flag = [_STREAM_FLAG[streams]] if streams != _streams(recorded.request.url, before) else []
    return (*flag, *([_hint(tape, source)] if source else []))


def drawn_otherwise(recorded: Exchange, form: Form) -> bool:
    """Return whether two requests differ in what looks drawn at random alone, in their bodies."""
    if recorded.request.url != form.record.url:
        return False
    return source_of(_document(recorded.request_body), _document(form.body)) in _DRAWN


def _streams(url: str, document: object) -> bool:
    """Return whether a request to a model asks for a stream."""
    if isinstance(document, dict) and document.get("stream") is True:
        return True
    return url.partition("?")[0].endswith(_STREAMS)


def _hint_of_order(then: str | None, now: str | None) -> str:
    """Return what to think of a changed order, by the hash seeds of both processes."""
    if then is None or now is None:
        when = "when this was recorded" if then is None else "in this process"
        return (
            f"{_ORDER} of a set? Hashes were random {when}: "
            "sort it, or use the command line, or start Python with PYTHONHASHSEED=0 for both"
        )
    if then != now:
        return (
            f"{_ORDER} of a set? PYTHONHASHSEED was {then} when this was recorded and is {now} "
            "here: sort it, or start Python with the same one"
        )
    return f"{_ORDER} of a folder's files, or of what came in first? Sort it"


def _hint(tape: Tape, source: Source) -> str:
    if source == "address":
        return _ADDRESS
    if source == "process":
        return _PROCESS
    if source == "order":
        return _hint_of_order(tape.environment.hash_seed if tape.environment else None, hash_seed())
    kind, what = ("clock", "the clock") if source == "clock" else ("entropy", "chance")
    looks = f"looks like {_LOOKS[source]}"
    chance = tape.chance
    if kind in (chance.ambient or ()) or any(reads.source == kind for reads in chance.reads):
        ways = _ways_of_time(tape) if kind == "clock" else _WAYS_OF_CHANCE
        return f"{looks}; {what} is on this tape: this {ways}, or is replayed with --no-{kind}"
    return f"{looks}; this tape was recorded without {what} (--no-{kind})"


def _ways_of_time(tape: Tape) -> str:
    """Return how a time can come to differ though the clock does not."""
    then = next((seen.value for seen in tape.surroundings if seen.kind == "timezone"), None)
    now = timezone(tape.environment.started / 1e9) if tape.environment else None
    if None in (then, now) or then == now:
        return _WAYS_OF_TIME
    zones = f"({then} when this was recorded, {now} now)"
    return f"is spelled in another timezone {zones}, {_WAYS_OF_TIME}"


def _document(body: bytes) -> object:
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _at(document: object, pointer: str) -> object:
    """Return the value at a JSON pointer, None where there is none."""
    for part in parts(pointer):
        document = child(document, part)
    return document


def _words(document: object) -> str:
    return document if isinstance(document, str) else json.dumps(document, ensure_ascii=False)

"""Everything that two live runs and their replays say about what does not repeat."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tracefork_core.errors import Divergence
from tracefork_core.explaining.causes import UNKNOWN, Cause, Run, causes
from tracefork_core.explaining.changes import Change, changes
from tracefork_core.explaining.fragments import fragments
from tracefork_core.providers import decompress, model_call
from tracefork_core.tape import Exchange, Tape

_NOT_AS_RECORDED = "Its value at replay is not the recorded one: see `tracefork replay`."
_NOT_TRACED = "not traced to a line"
_NOT_REACHED = "No replay came so far. Mend what is outside, and calibrate again."
_NEVER = -1


@dataclass(frozen=True, slots=True)
class Finding:
    """One source of difference at one place.

    Attributes:
        exchanges: the numbers of the exchanges where it shows.
        pointer: where in them, the first place.
        cause: why.
        outside: whether a replay cannot give it again.
        perhaps: whether that is not known: no replay came so far.
        before: what the first run had there.
        after: what the other had.
        places: at how many pointers it shows.
    """

    exchanges: tuple[int, ...]
    pointer: str
    cause: Cause
    outside: bool
    before: str = ""
    after: str = ""
    places: int = 1
    perhaps: bool = False


def between_recordings(
    first: Tape,
    second: Tape,
    runs: tuple[Run, Run],
    proven: Collection[int],
    left: Collection[int],
) -> list[Finding]:
    """Return why two live recordings differ. What replays have `proven` is on the tape.

    Those are the numbers of the exchanges that each replay asked as they were recorded; replays
    have `left` the tape at others.
    """
    found: list[Finding] = []
    told = _told(first), _told(second)
    known: dict[tuple[str, str], list[Cause]] = {}
    for change in changes(first, second):
        for cause, before, after in _traced(change, first, runs, told, known):
            outside = not (change.n in proven or cause.on_tape)
            perhaps = outside and cause.guessed and change.n not in left
            # What is proven to come back needs no mending.
            fix = (_NOT_REACHED if perhaps else cause.fix) if outside else ""
            what = _NOT_TRACED if cause.what == UNKNOWN and not outside else cause.what
            said = replace(cause, what=what, fix=fix)
            one = Finding((change.n,), change.pointer, said, outside)
            found.append(replace(one, before=before, after=after, perhaps=perhaps))
    return found


def at_divergence(divergence: Divergence, runs: tuple[Run, Run]) -> list[Finding]:
    """Return why a replay left its tape: what that shows is outside, whatever it looks like."""
    n, pointer = divergence.n, divergence.pointer
    if n is None or not pointer or divergence.recorded is None or divergence.actual is None:
        cause = Cause(divergence.summary, divergence.caller, on_tape=False, fix="")
        return [Finding((n,) if n is not None else (), pointer or "", cause, outside=True)]
    found = []
    pair = divergence.recorded.strip("…"), divergence.actual.strip("…")
    for before, after in list(fragments(*pair)) or [pair]:
        for known in causes(before, after, runs, ("", ""), _NEVER):
            fix = _NOT_AS_RECORDED if known.on_tape else known.fix
            cause = replace(known, on_tape=False, fix=fix)
            if known.what == UNKNOWN and divergence.hints:
                cause = replace(cause, what=" · ".join(divergence.hints), fix="")
            found.append(Finding((n,), pointer, cause, before=before, after=after, outside=True))
    return found


def _traced(
    change: Change,
    first: Tape,
    runs: tuple[Run, Run],
    told: tuple[list[str], list[str]],
    known: dict[tuple[str, str], list[Cause]],
) -> Iterator[tuple[Cause, str, str]]:
    if change.part == "answer":
        yield Cause(_answered(first.exchanges[change.n]), None, on_tape=True), *_pair(change)
    elif change.part == "request":
        for pair in fragments(change.before, change.after):
            # A transcript is sent again and again: what was explained once stays so.
            if pair not in known:
                answers = "\n".join(told[0][: change.n]), "\n".join(told[1][: change.n])
                known[pair] = list(causes(*pair, runs, answers, change.n))
            for cause in known[pair]:
                yield cause, *pair
    else:
        yield Cause("asked by one run only", None, on_tape=True), *_pair(change)


def _pair(change: Change) -> tuple[str, str]:
    return change.before, change.after


def _answered(exchange: Exchange) -> str:
    if (call := model_call(exchange)) is None:
        return "the answer differed"
    temperature = call.parameters.get("temperature")
    degree = f" (temperature {json.dumps(temperature)})" if temperature is not None else ""
    return f"the model's answer differed{degree}"


def _told(tape: Tape) -> list[str]:
    """Return what each exchange of a run told it, as it is and as JSON means it."""
    return ["\n".join(_texts(exchange)) for exchange in tape.exchanges]


def _texts(exchange: Exchange) -> Iterator[str]:
    coding = {k.lower(): v for k, v in exchange.response_headers}.get("content-encoding")
    body = exchange.response_body
    text = ((decompress(body, coding) or body) if coding else body).decode("utf-8", "replace")
    yield text
    try:
        yield from _strings(json.loads(text))
    except (ValueError, RecursionError):
        if (call := model_call(exchange)) is not None:
            yield from (call.text, *(json.dumps(one.arguments) for one in call.tool_calls))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def together(replayed: Sequence[Finding], live: Sequence[Finding]) -> list[Finding]:
    """Put together what replays and live runs say; of one place, live runs know more.

    Each source is said once for each line, with the exchanges and the first place where it shows.
    """
    told = {(one.exchanges, one.pointer) for one in live if one.outside}
    found = [one for one in replayed if (one.exchanges, one.pointer) not in told]
    outside = {(one.cause.what, one.cause.site) for one in found}
    gathered: dict[tuple[object, ...], list[Finding]] = {}
    for one in [*found, *live]:
        source = one.cause.what, one.cause.site
        if one.outside or source not in outside:
            gathered.setdefault((source, one.outside, one.perhaps), []).append(one)
    return [_gathered(group) for group in gathered.values()]


def _gathered(group: Sequence[Finding]) -> Finding:
    exchanges = tuple(sorted({n for one in group for n in one.exchanges}))
    places = len({one.pointer for one in group})
    return replace(group[0], exchanges=exchanges, places=places)

"""Combine what two live runs and their replays show about values that differ between runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tracefork_core.errors import Divergence
from tracefork_core.explaining.causes import UNKNOWN, Cause, Run, causes
from tracefork_core.explaining.changes import Change, changes, fragments
from tracefork_core.providers import is_bounded, model_call
from tracefork_core.tape import Exchange, Tape
from tracefork_core.unpacking import decompress

_NOT_AS_RECORDED = "Replay did not restore the recorded value: run `tracefork replay` to see where."
_NOT_TRACED = "not traced to a line"
_NOT_REACHED = "No replay got this far. Fix the sources above, then calibrate again."
_NO_EXCHANGE = -1


@dataclass(frozen=True, slots=True)
class Finding:
    """One source of difference between runs.

    Attributes:
        exchanges: the numbers of the exchanges where it shows.
        pointer: the first place in them.
        cause: why the values differ.
        outside: whether a replay cannot restore the value.
        before: the value in the first run.
        after: the value in the other run.
        places: at how many pointers it shows.
        perhaps: whether `outside` is uncertain, because no replay got that far.
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
    """Return why two live recordings differ.

    Args:
        first: the recording that was replayed.
        second: the other recording.
        runs: what is known about both runs besides their tapes.
        proven: the exchanges that every replay asked for as recorded, so their values are on tape.
        left: the exchanges at which replays left the tape.
    """
    findings: list[Finding] = []
    answers = _answers(first), _answers(second)
    known: dict[tuple[str, str], list[Cause]] = {}
    for change in changes(first, second):
        for cause, before, after in _traced(change, first, runs, answers, known):
            outside = not (change.n in proven or cause.on_tape)
            perhaps = outside and cause.guessed and change.n not in left
            # A value that replays are proven to restore needs no fix.
            fix = (_NOT_REACHED if perhaps else cause.fix) if outside else ""
            what = _NOT_TRACED if cause.what == UNKNOWN and not outside else cause.what
            shown = replace(cause, what=what, fix=fix)
            finding = Finding((change.n,), change.pointer, shown, outside, before, after)
            findings.append(replace(finding, perhaps=perhaps))
    return findings


def at_divergence(divergence: Divergence, runs: tuple[Run, Run]) -> list[Finding]:
    """Return why a replay left its tape.

    The differing value is outside, even if it looks like one that recordings hold.
    """
    n, pointer = divergence.n, divergence.pointer
    if n is None or not pointer or divergence.recorded is None or divergence.actual is None:
        cause = Cause(divergence.summary, divergence.caller, on_tape=False, fix="")
        return [Finding((n,) if n is not None else (), pointer or "", cause, outside=True)]
    findings = []
    pair = divergence.recorded.strip("…"), divergence.actual.strip("…")
    for before, after in list(fragments(*pair)) or [pair]:
        for known in causes(before, after, runs, ("", ""), _NO_EXCHANGE):
            fix = _NOT_AS_RECORDED if known.on_tape else known.fix
            cause = replace(known, on_tape=False, fix=fix)
            if known.what == UNKNOWN and divergence.hints:
                cause = replace(cause, what=" · ".join(divergence.hints), fix="")
            findings.append(Finding((n,), pointer, cause, before=before, after=after, outside=True))
    return findings


def together(replayed: Sequence[Finding], live: Sequence[Finding]) -> list[Finding]:
    """Merge the findings of replays and live runs; for the same place, live runs know more.

    The result has one finding for each source and line, with all its exchanges.
    """
    live_places = {(finding.exchanges, finding.pointer) for finding in live if finding.outside}
    own = [each for each in replayed if (each.exchanges, each.pointer) not in live_places]
    outside = {(finding.cause.what, finding.cause.site) for finding in own}
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in [*own, *live]:
        source = finding.cause.what, finding.cause.site
        if finding.outside or source not in outside:
            groups.setdefault((source, finding.outside, finding.perhaps), []).append(finding)
    return [_merged(group) for group in groups.values()]


def _merged(group: Sequence[Finding]) -> Finding:
    exchanges = tuple(sorted({n for finding in group for n in finding.exchanges}))
    places = len({finding.pointer for finding in group})
    return replace(group[0], exchanges=exchanges, places=places)


def _traced(
    change: Change,
    first: Tape,
    runs: tuple[Run, Run],
    answers: tuple[list[str], list[str]],
    known: dict[tuple[str, str], list[Cause]],
) -> Iterator[tuple[Cause, str, str]]:
    if change.part == "answer":
        yield _answer_cause(first.exchanges[change.n]), change.before, change.after
    elif change.part == "request":
        for pair in fragments(change.before, change.after):
            # Agents send the transcript with every request: explain each piece of it once.
            if pair not in known:
                earlier = "\n".join(answers[0][: change.n]), "\n".join(answers[1][: change.n])
                known[pair] = list(causes(*pair, runs, earlier, change.n))
            for cause in known[pair]:
                yield cause, *pair
    else:
        cause = Cause("only one run made this request", None, on_tape=True)
        yield cause, change.before, change.after


def _answer_cause(exchange: Exchange) -> Cause:
    if (call := model_call(exchange)) is None:
        return Cause("the answer differed", None, on_tape=True)
    temperature = call.parameters.get("temperature")
    degree = f" (temperature {json.dumps(temperature)})" if temperature is not None else ""
    return Cause(f"the model's answer differed{degree}", None, on_tape=True)


def _answers(tape: Tape) -> list[str]:
    """Return each response of a run as text, followed by the strings that its JSON contains."""
    return ["\n".join(_texts(exchange)) for exchange in tape.exchanges]


def _texts(exchange: Exchange) -> Iterator[str]:
    coding = {k.lower(): v for k, v in exchange.response_headers}.get("content-encoding")
    body = exchange.response_body
    plain = (decompress(body, coding) or body) if coding else body
    if not is_bounded(plain):
        return
    text = plain.decode("utf-8", "replace")
    yield text
    try:
        yield from _strings(json.loads(text))
    except (ValueError, RecursionError):
        if (call := model_call(exchange)) is not None:
            yield from (call.text, *(json.dumps(tool.arguments) for tool in call.tool_calls))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)

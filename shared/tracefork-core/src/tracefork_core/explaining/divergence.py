"""Describe where a run left its tape: the first difference and the nearest recorded exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracefork_core.errors import Candidate, Divergence
from tracefork_core.exchange.caller import caller
from tracefork_core.explaining.advice import hints
from tracefork_core.explaining.differences import Difference, differences
from tracefork_core.matching.comparable import Form
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.event import Stop

LEFTOVER = "leftover"
"""The kind of a divergence at the end of a run: recorded exchanges were never asked for."""
_SHOWN_CANDIDATES = 3
# Comparing bodies takes time: a divergence late in a long run looks at so many exchanges only.
_COMPARED = 64
_NAMED = 8


def unknown_request(
    tape: Tape,
    form: Form,
    due: Exchange | None,
    unused: Sequence[Exchange],
    matchers: Sequence[str],
) -> Divergence:
    """Describe a request that no unused exchange of the tape answers."""
    ranked = _rank(form, due, unused, matchers)
    if not ranked:
        return _extra(tape, form)
    nearest, differing = ranked[0]
    first = differing[0] if differing else None
    return replace(
        _about(tape, nearest, "request", f"the request differs from recorded exchange {nearest.n}"),
        request=f"{form.record.method} {form.url}",
        pointer=first.pointer if first else None,
        recorded=first.recorded if first else None,
        actual=first.actual if first else None,
        hints=hints(tape, nearest, form, first.pointer if first else None),
        candidates=tuple(
            Candidate(exchange.n, _reason(listed))
            for exchange, listed in ranked[:_SHOWN_CANDIDATES]
        ),
    )


def out_of_order(tape: Tape, form: Form, due: Exchange, asked: Exchange) -> Divergence:
    """Describe a recorded request that came before an earlier one of its lane."""
    too_early = f"exchange {asked.n} was requested too early"
    summary = f"{too_early}: exchange {due.n} comes first on lane {due.lane}"
    return replace(
        _about(tape, due, "order", summary),
        request=f"{form.record.method} {form.url}",
        pointer="lane",
        recorded=f"#{due.n} {due.method} {due.url}",
        actual=f"#{asked.n} {form.record.method} {form.url}",
        candidates=(Candidate(asked.n, "equal, but out of turn"),),
    )


def left_over(tape: Tape, unused: Sequence[Exchange]) -> Divergence:
    """Describe recorded exchanges that the agent never asked for."""
    first = unused[0]
    numbers = ", ".join(f"#{exchange.n}" for exchange in unused[:_NAMED])
    numbers += ", …" if len(unused) > _NAMED else ""
    were = "exchange was" if len(unused) == 1 else "exchanges were"
    summary = f"{len(unused)} recorded {were} never asked for: {numbers}"
    return replace(_about(tape, first, LEFTOVER, summary), caller=first.aside.caller)


def cut_off(tape: Tape, exchange: Exchange) -> str:
    """Explain that the recording was cut off before the requested part of an exchange."""
    cut = f"tracefork: {tape.path} is incomplete: the recording was cut off"
    if tape.complete:
        cut = f"tracefork: the recording of {tape.path} was interrupted by Ctrl-C"
    count = len(tape.exchanges)
    counted = f"{count} exchange{'' if count == 1 else 's'}"
    if exchange.n < count:
        return f"{cut} while exchange {exchange.n} was in flight. Everything before it replayed."
    return (
        f"{cut} after {counted}, and {exchange.method} {exchange.url} is not "
        "among them. It replays up to here."
    )


def stalled(
    tape: Tape, waiting: Exchange, missing: Exchange, seconds: float, *, asked: bool
) -> Divergence:
    """Describe a wait that timed out: an earlier response of the recording is not read now.

    `asked` tells whether the missing exchange was at least asked for.
    """
    now = "not read any further" if asked else "not asked for"
    summary = (
        f"exchange {waiting.n} waited {seconds:.0f} s for exchange {missing.n}, which was "
        f"answered earlier in the recording and is {now} in this run"
    )
    return _about(tape, missing, "stalled", summary)


def read_further(tape: Tape, exchange: Exchange) -> Divergence:
    """Describe a response that is read beyond where the recorded agent stopped reading."""
    stopped = "gave up waiting" if exchange.end == "cancelled" else "stopped"
    summary = (
        f"exchange {exchange.n} is read further than when it was recorded: the recorded agent "
        f"{stopped} after {_recorded_chunks(exchange)}"
    )
    return _about(tape, exchange, "read", summary)


def read_less(tape: Tape, exchange: Exchange, chunks: int, size: int) -> Divergence:
    """Describe a response that the agent stopped reading earlier than the recorded agent."""
    recorded, now = _recorded_chunks(exchange), _chunks(chunks, size)
    missing = f"{now} now, {recorded} then"
    if recorded == now:
        missing = f"{now}, and not the {'failure' if exchange.failure else 'head'} that came then"
    summary = f"exchange {exchange.n} is read less far than when it was recorded: {missing}"
    return replace(_about(tape, exchange, "read", summary), caller=exchange.aside.caller)


def moved(tape: Tape, form: Form, exchange: Exchange, lane: str) -> Divergence:
    """Describe a recorded request that was made in another thread or task."""
    return replace(
        _about(tape, exchange, "lane", moved_words(exchange, lane)),
        request=f"{form.record.method} {form.url}",
        pointer="lane",
        recorded=exchange.lane,
        actual=lane,
    )


def moved_words(exchange: Exchange, lane: str) -> str:
    """Say in which thread or task an exchange ran, and in which it was recorded."""
    return (
        f"exchange {exchange.n} ran in another thread or task than when it was recorded: "
        f"{lane} now, {exchange.lane} then"
    )


def overtaken(tape: Tape, deliveries: int) -> Divergence:
    """Describe deliveries that could not wait for their recorded turn."""
    were = "delivery" if deliveries == 1 else "deliveries"
    return Divergence(
        kind="order",
        summary=f"{deliveries} {were} came in another order than when this was recorded",
        tape=str(tape.path),
        of=len(tape.exchanges),
    )


def not_stopped(tape: Tape, stop: Stop) -> Divergence:
    """Describe a run that does not make the request which the recorded fork was stopped before."""
    return Divergence(
        kind=LEFTOVER,
        summary="the fork was stopped before a request that is not made now",
        tape=str(tape.path),
        of=len(tape.exchanges),
        request=f"{stop.method} {stop.url}",
    )


def ended(tape: Tape, recorded: str, actual: str) -> Divergence:
    """Describe another end of the run than the recorded one."""
    return Divergence(
        kind="end",
        summary=f"the run ended with {actual} now, and with {recorded} when it was recorded",
        tape=str(tape.path),
        of=len(tape.exchanges),
    )


def step_names(exchange: Exchange) -> str | None:
    """Return the path of the step that made a request, as "agent ▸ model", if known."""
    return " ▸ ".join(exchange.step_path) or None


def _about(tape: Tape, exchange: Exchange, kind: str, summary: str) -> Divergence:
    return Divergence(
        kind=kind,
        summary=summary,
        tape=str(tape.path),
        of=len(tape.exchanges),
        n=exchange.n,
        step=step_names(exchange),
        caller=caller(),
        request=f"{exchange.method} {exchange.url}",
    )


def _recorded_chunks(exchange: Exchange) -> str:
    return _chunks(len([size for size in exchange.aside.sizes if size]), sum(exchange.aside.sizes))


def _chunks(chunks: int, size: int) -> str:
    return f"{chunks} chunk{'' if chunks == 1 else 's'} ({size} bytes)"


def _extra(tape: Tape, form: Form) -> Divergence:
    return Divergence(
        kind="extra",
        summary="one more request than was recorded",
        tape=str(tape.path),
        of=len(tape.exchanges),
        caller=caller(),
        request=f"{form.record.method} {form.url}",
    )


def _rank(
    form: Form, due: Exchange | None, unused: Sequence[Exchange], matchers: Sequence[str]
) -> list[tuple[Exchange, list[Difference]]]:
    """Order candidates by how much differs; the exchange that is due wins a tie."""
    pool = [*([due] if due else []), *(e for e in unused if e is not due)][:_COMPARED]
    scored = [(exchange, differences(form, exchange, matchers)) for exchange in pool]
    return sorted(scored, key=lambda pair: (_weight(pair[1]), pair[0] is not due))


def _weight(differing: list[Difference]) -> int:
    return sum(100 if d.pointer in ("url", "method") else 1 for d in differing)


def _reason(differing: list[Difference]) -> str:
    if not differing:
        return "equal, but already replayed"
    count = len(differing)
    named = ", ".join(d.pointer for d in differing[:3])
    more = f" and {count - 3} more" if count > 3 else ""
    return f"{count} difference{'s' if count > 1 else ''}: {named}{more}"

"""Say where a run left its tape: the first difference, the nearest candidates, why not those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracefork_core.errors import Candidate, Divergence
from tracefork_core.exchange.caller import caller
from tracefork_core.explaining.differences import Difference, differences
from tracefork_core.explaining.hints import hints
from tracefork_core.matching.comparable import Form
from tracefork_core.tape import Exchange, Tape

LEFTOVER = "leftover"
"""The kind of a divergence that was found at the end: something was never asked for."""
_CANDIDATES = 3
_COMPARED = 64
_NAMED = 8


def asked_otherwise(
    tape: Tape,
    form: Form,
    due: Exchange | None,
    unused: Sequence[Exchange],
    matchers: Sequence[str],
) -> Divergence:
    """Describe a request that the tape does not hold."""
    ranked = _rank(form, due, unused, matchers)
    if not ranked:
        return _extra(tape, form)
    nearest, found_there = ranked[0]
    first = found_there[0] if found_there else None
    return replace(
        _about(tape, nearest, "request", f"the request differs from recorded exchange {nearest.n}"),
        request=f"{form.record.method} {form.url}",
        pointer=first.pointer if first else None,
        recorded=first.recorded if first else None,
        actual=first.actual if first else None,
        hints=hints(tape, nearest, form, first.pointer if first else None),
        candidates=tuple(Candidate(e.n, _reason(found)) for e, found in ranked[:_CANDIDATES]),
    )


def out_of_order(tape: Tape, form: Form, due: Exchange, asked: Exchange) -> Divergence:
    """Describe a recorded request that came before an earlier one of its lane."""
    summary = f"exchange {asked.n} was asked while exchange {due.n} of lane {due.lane} was due"
    return replace(
        _about(tape, due, "order", summary),
        request=f"{form.record.method} {form.url}",
        pointer="lane",
        recorded=f"#{due.n} {due.method} {due.url}",
        actual=f"#{asked.n} {form.record.method} {form.url}",
        candidates=(Candidate(asked.n, "equal, but not its turn"),),
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
    """Say that a recording was cut off before what is asked of an exchange."""
    cut = f"tracefork: {tape.path} is incomplete: the recording was cut off"
    if exchange.n < len(tape.exchanges):
        return f"{cut} while exchange {exchange.n} was in flight. Everything before it replayed."
    return (
        f"{cut} after {len(tape.exchanges)} exchanges, and {exchange.method} {exchange.url} is not "
        "among them. It replays up to here."
    )


def stalled(
    tape: Tape, waiting: Exchange, missing: Exchange, seconds: float, *, asked: bool
) -> Divergence:
    """Describe a recorded order that cannot come about: an earlier answer is not taken."""
    now = "not read on" if asked else "not asked for"
    summary = (
        f"exchange {waiting.n} waited {seconds:.0f} s for exchange {missing.n}, which was "
        f"answered earlier when this was recorded and is {now} now"
    )
    return _about(tape, missing, "stalled", summary)


def read_further(tape: Tape, exchange: Exchange) -> Divergence:
    """Describe an answer that is read beyond where the recorded agent stopped or gave up."""
    stopped = "gave up waiting" if exchange.end == "cancelled" else "stopped"
    summary = (
        f"exchange {exchange.n} is read further than when it was recorded: the agent {stopped} "
        f"after {len(exchange.response_body)} bytes then"
    )
    return _about(tape, exchange, "read", summary)


def step_names(exchange: Exchange) -> str | None:
    """Return "agent ▸ model" for the step that asked, if it is known."""
    return " ▸ ".join(exchange.step_path) or None


def _about(tape: Tape, exchange: Exchange, kind: str, summary: str) -> Divergence:
    """Describe what went wrong about a recorded exchange, and where the agent is now."""
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
    """Order candidates by how much differs; the exchange that was due wins a tie."""
    pool = [*([due] if due else []), *(e for e in unused if e is not due)][:_COMPARED]
    scored = [(exchange, differences(form, exchange, matchers)) for exchange in pool]
    return sorted(scored, key=lambda pair: (_weight(pair[1]), pair[0] is not due))


def _weight(found: list[Difference]) -> int:
    return sum(100 if d.pointer in ("url", "method") else 1 for d in found)


def _reason(found: list[Difference]) -> str:
    if not found:
        return "equal, but already replayed"
    named = ", ".join(d.pointer for d in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"{len(found)} difference{'s' if len(found) > 1 else ''}: {named}{more}"

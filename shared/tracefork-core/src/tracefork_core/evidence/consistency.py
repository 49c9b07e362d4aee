"""Check that a tape adds up, without running anything."""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.run.untaped import untaped_calls
from tracefork_core.tape import Tape
from tracefork_core.tape.integrity import check_integrity


def problems(tape: Tape) -> Iterator[str]:
    """Yield what does not add up, one line each.

    Raises:
        TapeError: the tape cannot be read.
    """
    integrity = check_integrity(tape.path)
    for damage in integrity.damage:
        yield f"{damage.where}: {damage.what}"
    receipt = tape.receipt
    if receipt is None:
        yield "the recording was cut off, so the end of the run is unknown"
        return
    if receipt.digest and receipt.digest != tape.digest:
        yield f"the receipt has digest {receipt.digest[:8]}, and the exchanges {tape.digest[:8]}"
    known = {step.id for step in tape.steps}
    for step in tape.steps:
        if step.ended is None:
            yield f"the step {step.name} has no end"
        if step.parent is not None and step.parent not in known:
            yield f"the step {step.name} has a parent that is not on the tape"
    for exchange in tape.exchanges:
        if exchange.step is not None and exchange.step not in known and tape.origin is None:
            yield f"exchange {exchange.n} is in a step that is not on the tape"
        if exchange.end == "open":
            yield f"exchange {exchange.n} has no end"


def unknown(tape: Tape) -> list[str]:
    """Return what the tape cannot be evidence for: calls of tools that it does not hold."""
    names = dict.fromkeys(part.name for _, part in untaped_calls(tape))
    return [
        f"calls of {name} ran in the agent's process: they are not on the tape" for name in names
    ]

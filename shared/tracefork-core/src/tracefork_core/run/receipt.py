"""What a run that was written to a tape says about itself."""

from __future__ import annotations

from tracefork_core.egress import Watch
from tracefork_core.session import Session
from tracefork_core.tape import Receipt


def receipt(watch: Watch, session: Session, error: BaseException | None) -> Receipt:
    """Return the receipt of a run that ended with `error`; its writer adds digest and counts."""
    mask = session.masking.text
    return Receipt(
        digest="",
        exchanges=0,
        connections=watch.connections,
        crossed=watch.crossed,
        strays=[mask(stray) for stray in watch.strays],
        subprocesses=[mask(program) for program in watch.subprocesses],
        outcome="ok" if error is None else type(error).__name__,
        secrets=session.masking.counts,
    )

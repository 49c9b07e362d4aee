"""The receipt of a run: what left the process, how the run ended, which secrets were masked."""

from __future__ import annotations

from tracefork_core.egress import Watch
from tracefork_core.masking.masking import Masking
from tracefork_core.tape import Receipt


def receipt_of(watch: Watch, masking: Masking, error: BaseException | None) -> Receipt:
    """Return what a run that ended with `error` says about itself.

    The writer of the tape adds the digest and the counts as it closes.
    """
    return Receipt(
        digest="",
        exchanges=0,
        connections=watch.connections,
        crossed=watch.crossed,
        strays=[masking.text(stray) for stray in watch.strays],
        subprocesses=[masking.text(program) for program in watch.subprocesses],
        outcome="ok" if error is None else type(error).__name__,
        secrets=masking.counts,
    )

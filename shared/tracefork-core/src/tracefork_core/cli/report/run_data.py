"""The data of one run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import msgspec

from tracefork_core.blaming.last_blame import last_blame
from tracefork_core.blaming.report import Report
from tracefork_core.checkpoints.store import checkpoint_file
from tracefork_core.cli import tape_names
from tracefork_core.cli.agent import command_store
from tracefork_core.cli.display import figures
from tracefork_core.cli.display.imported import ENDS
from tracefork_core.cli.report import branch_strip, evidence, recording
from tracefork_core.cli.report.blocks import Blocks
from tracefork_core.cli.report.document import Checkpoint, Index, Outcome, Parent, Run
from tracefork_core.cli.report.packing import Parts
from tracefork_core.tape import Tape

_SHOWN = 8
"""The last characters of an id tell checkpoints apart."""


def run_of(
    tape: Tape,
    parts: Parts,
    *,
    content: bool,
    parent: int | None = None,
    only: int | None = None,
    blame: Report | None = None,
) -> Run:
    """Return the data of a run; what grows with its length goes into `parts`.

    Args:
        tape: the run.
        parts: where its packed parts go.
        content: whether the texts of the run are in the page.
        parent: the place of its parent in the page. The exchanges that it shares are not repeated.
        only: the one exchange that the page holds.
        blame: what a blame of it found; by default, the last one's result.

    Raises:
        TapeError: the tape is corrupt, or sealed and its key is not here.
    """
    shown = tape_names.shown(tape.path)
    at = tape.origin.at if tape.origin and parent is not None else 0
    exchanges = tape.exchanges
    held = exchanges[at:] if only is None else [exchanges[only]]
    steps = tape.steps if only is None else held[0].steps
    first = exchanges[:1] if only is None else held
    began = first[0].aside.started if first else 0
    blocks = Blocks(tape, steps, parts, began=began, content=content)
    for exchange in held:
        blocks.add(exchange)
    index = blocks.close()
    head = head_of(
        tape, blocks, index.errors, lasted(index), content=content, only=only, blame=blame
    )
    if only is not None:
        found = evidence.of_exchange(only, index, shown)
        head = msgspec.structs.replace(
            head, only=only, took=lasted(index), finding=found, checkpoints=[]
        )
    return msgspec.structs.replace(
        head,
        parent=None if parent is None else Parent(parent, at),
        started=round(began / 1e6),
        branch=branch_strip.strip(tape, content=content) if only is None else None,
        index=parts.add(index),
    )


def head_of(
    tape: Tape,
    blocks: Blocks,
    errors: Mapping[str, str],
    took: int,
    *,
    content: bool,
    only: int | None = None,
    blame: Report | None = None,
) -> Run:
    """Return the totals and facts of a run, without its rows and the comparison with its parent.

    `errors` are those of its rows. `took` is its time in milliseconds, if no receipt says it.
    """
    shown, exchanges = tape_names.shown(tape.path), tape.exchanges
    report = blame or last_blame(tape)
    account, receipt = blocks.account, tape.receipt
    return Run(
        name=shown,
        digest=tape.digest,
        exchanges=len(exchanges),
        parent=None,
        only=None,
        command=_command(tape) if content else None,
        started=round(exchanges[0].aside.started / 1e6) if exchanges else 0,
        took=round(receipt.took / 1e6) if receipt else took,
        outcome=_outcome(tape),
        finding=evidence.finding(tape, report, errors, shown, content=content),
        totals=recording.totals(account),
        facts=list(recording.facts(tape)),
        coverage=recording.coverage(tape),
        masked=recording.masked(tape),
        limits=recording.limits(tape, account),
        lanes=blocks.lanes,
        blame=None
        if report is None
        else evidence.blame_of(report, shown, content=content, only=only),
        branch=None,
        checkpoints=_checkpoints(tape, shown) if content else [],
        index="",
        blocks=blocks.ids,
    )


def lasted(index: Index) -> int:
    """Return the milliseconds from the start of a run to the end of its last row."""
    ends = (began + max(0, took) for began, took in zip(index.started, index.took, strict=True))
    return max(ends, default=0)


def _outcome(tape: Tape) -> Outcome:
    receipt, stop = tape.receipt, tape.stop
    if stop is not None:
        return Outcome(ok=False, words=f"the fork was {stop.words}")
    if receipt is None:
        return Outcome(ok=False, words="cut off")
    if receipt.has_failed:
        return Outcome(ok=False, words=f"failed with {receipt.outcome}")
    return Outcome(ok=receipt.outcome == "ok" or None, words=ENDS[receipt.outcome])


def _command(tape: Tape) -> str | None:
    run = command_store.recall(tape.path)
    return run.agent.words if run is not None and run.digest == tape.digest else None


def _checkpoints(tape: Tape, shown: str) -> list[Checkpoint]:
    """Return the saved states that the run went on from, each before the first exchange from it."""
    first: dict[tuple[str, str], int] = {}
    for exchange in tape.exchanges:
        if exchange.checkpoint is not None:
            first.setdefault(exchange.checkpoint, exchange.n)
    if not first:
        return []
    listed = []
    for one in checkpoint_file(tape.path).search():
        if (n := first.get((one.thread, one.id))) is not None:
            words = f"thread {one.thread}, step {one.metadata.get('step', figures.UNKNOWN)}"
            state = shlex.quote(one.id[-_SHOWN:])
            command = f"tracefork show {shlex.quote(shown)} --checkpoint {state}"
            listed.append(Checkpoint(n, words, command))
    return sorted(listed, key=lambda one: one.exchange)

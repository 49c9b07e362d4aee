"""Compare two runs, or a branch with the run that it was forked from: `tracefork_core.diff`."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from tracefork_core.comparing.finding import Finding, Kind, Section
from tracefork_core.comparing.judge import Past, judge, label
from tracefork_core.comparing.pairing import Pair, Pairs, Run, pair
from tracefork_core.errors import ReplayError, UsageError
from tracefork_core.tape import Exchange, Tape


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of `diff`.

    Attributes:
        findings: the differences in the order in which they appear; empty for equal runs.
        kinds: how many exchanges are of each kind; those of the same place once.
        after_other: how many exchanges are the same but follow another history.
        incidental: how many exchanges are the same but for clock and ids.
    """

    findings: tuple[Finding, ...]
    kinds: dict[Kind, int]
    after_other: int = 0
    incidental: int = 0

    def __bool__(self) -> bool:
        """Whether the runs differ."""
        return bool(self.findings)

    @property
    def first(self) -> Finding | None:
        """The first difference, or None."""
        return self.findings[0] if self.findings else None

    def document(self) -> dict[str, object]:
        """Return it as JSON-able values."""
        return {
            "same": not self.findings,
            "kinds": self.kinds,
            "after_other_history": self.after_other,
            "clock_or_ids_alone": self.incidental,
            "findings": [{"place": one.place, **asdict(one)} for one in self.findings],
        }


def diff(
    first: str | Path | Tape, second: str | Path | Tape | None = None, *, strict: bool = False
) -> Comparison:
    """Compare two runs, exchange by exchange.

    Exchanges are paired by lane, step and content, so that one more or one less does not shift what
    follows. Clock, ids and the order in which lanes took turns are no differences. A history that
    differs is one difference, where it began: the same question after it counts as the same.

    Args:
        first: a tape, or its path.
        second: the tape to compare it with; by default, `first` is a branch, and is compared with
            the tape that it was forked from, as the first run.
        strict: compare all that lies on the tapes, headers, clock, ids and the order asked too.

    Raises:
        UsageError: there is no such tape, or the only one is no branch.
        ReplayError: both tapes are without exchanges.
        TapeError: a tape is corrupt, or is sealed and its key is not here.
    """
    with ExitStack() as opened:
        one = _open(first, opened)
        other = None if second is None else _open(second, opened)
        if other is None:
            one, other = parent_of(one), one
        runs = Run(one, strict=strict), Run(other, strict=strict)
        if not any(run.exchanges for run in runs):
            raise ReplayError(
                f"tracefork: neither {one.path.name} nor {other.path.name} holds an exchange, so "
                "that there is nothing to compare."
            )
        return _compared(*runs, pair(*runs))


def _open(tape: str | Path | Tape, opened: ExitStack) -> Tape:
    return tape if isinstance(tape, Tape) else opened.enter_context(Tape.open(tape))


def parent_of(branch: Tape) -> Tape:
    """Return the run that a branch is compared with.

    Raises:
        UsageError: the tape is no branch.
    """
    if branch.parent is None:
        raise UsageError(
            f"tracefork: {branch.path.name} is not a branch, so there is nothing to compare it "
            f"with. Name a second tape: `tracefork diff {branch.path.name} OTHER.tape`"
        )
    return branch.parent


def _compared(first: Run, second: Run, found: Pairs) -> Comparison:
    kinds: Counter[Kind] = Counter()
    findings: list[Finding] = []
    after_other = incidental = 0
    past = Past()
    blocks = {one.n: block for block in found.moved for one, _ in block}
    for one, other in _in_order(found):
        if one is None or other is None:
            findings.append(_single(one, other, first, second, past))
            kinds[findings[-1].kind] += 1
            continue
        if (block := blocks.get(one.n)) is not None:
            findings += [_moved(block, first)] if block[0][0] is one else []
            kinds["exact"] += 1
            continue
        if first.taped(one) == second.taped(other):
            kinds["exact"] += 1
            continue
        reading = first.reading(one)
        judged = judge(reading, second.reading(other), past)
        kinds[judged.kind] += 1
        after_other += judged.kind == "exact" and judged.after_other
        incidental += judged.kind == "exact" and not judged.after_other
        if judged.kind != "exact":
            findings.append(
                Finding(
                    judged.kind,
                    one.n,
                    other.n,
                    judged.pointer,
                    one.lane,
                    one.step_path,
                    reading.operation,
                    judged.sections,
                )
            )
    return Comparison(tuple(findings), dict(kinds), after_other, incidental)


def _in_order(found: Pairs) -> Iterator[tuple[Exchange | None, Exchange | None]]:
    """Yield what was paired in the order of the first run, and extra ones where they came in."""
    pairs = sorted(found.pairs, key=lambda each: each[1].n)
    numbers = [other.n for _, other in pairs]
    moved = (each for block in found.moved for each in block)
    placed: list[tuple[tuple[int, int], Exchange | None, Exchange | None]] = [
        *(((one.n, -1), one, other) for one, other in (*pairs, *moved)),
        *(((one.n, -1), one, None) for one in found.missing),
    ]
    for other in found.extra:
        at = bisect_left(numbers, other.n) - 1
        placed.append(((pairs[at][0].n if at >= 0 else -1, other.n), None, other))
    placed.sort(key=lambda one: one[0])
    yield from ((one, other) for _, one, other in placed)


def _single(
    one: Exchange | None, other: Exchange | None, first: Run, second: Run, past: Past
) -> Finding:
    """Return the finding of an exchange that only one of the runs has."""
    exchange = one or other
    assert exchange is not None
    reading = (first if one else second).reading(exchange)
    (past.before if one else past.after).add_exchange(reading)
    asked = {label(message): message.words for message in reading.tail} or reading.fixed
    parts = {**asked, **reading.answer}
    return Finding(
        "missing" if one else "extra",
        one.n if one else None,
        other.n if other else None,
        "",
        exchange.lane,
        exchange.step_path,
        reading.operation,
        tuple(
            Section(name, value if one else None, None if one else value)
            for name, value in parts.items()
        ),
    )


def _moved(block: list[Pair], first: Run) -> Finding:
    """Return the finding of exchanges that stand elsewhere in their lane."""
    one, other = block[0]
    reading = first.reading(one)
    return Finding(
        "operation differs",
        one.n,
        other.n,
        "order",
        one.lane,
        one.step_path,
        reading.operation,
        count=len(block),
        is_moved=True,
    )

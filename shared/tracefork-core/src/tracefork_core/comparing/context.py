"""Compare what two questions told a model: what was injected, dropped, changed, truncated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from tracefork_core.comparing.alignment import align
from tracefork_core.comparing.incidental import Incidental
from tracefork_core.comparing.judge import differing, label
from tracefork_core.comparing.reading import Reading, Spoken, read
from tracefork_core.errors import UsageError
from tracefork_core.providers.lenient import Json
from tracefork_core.tape import Exchange, Tape

How = Literal["injected", "dropped", "changed", "truncated"]
_LEAST_CUT, _LONGEST_MARK = 20, 20
"""The characters that a truncated text lacks, and those of the mark that it may have instead."""


@dataclass(frozen=True, slots=True)
class Told:
    """One difference between the contexts of two questions.

    Attributes:
        how: how the second question differs.
        what: "system prompt", "tools offered", "settings", "model", or what a message is.
        first: the number of the message in the first question, from 0; None of what is no message.
        second: the number of the message in the second question.
        before: what the first question says.
        after: what the second question says.
    """

    how: How
    what: str
    first: int | None
    second: int | None
    before: Json
    after: Json


@dataclass(frozen=True, slots=True)
class Contexts:
    """Two questions to a model: what differs, and how many messages both have."""

    told: tuple[Told, ...]
    shared: int

    def document(self) -> dict[str, object]:
        """Return it as JSON-able values."""
        return {
            "same": not self.told,
            "shared_messages": self.shared,
            "differences": [asdict(one) for one in self.told],
        }


def compare_contexts(first: tuple[Tape, Exchange], second: tuple[Tape, Exchange]) -> Contexts:
    """Compare two questions to a model, of one tape or of two.

    Raises:
        UsageError: an exchange is not a model call.
    """
    one, other = (_question(*each) for each in (first, second))
    pairs = align([each.key for each in one.messages], [each.key for each in other.messages])
    told = [
        Told("changed", each.name, None, None, each.before, each.after)
        for each in differing(one.fixed, other.fixed)
    ]
    at, there = 0, 0
    for i, j in [*pairs, (len(one.messages), len(other.messages))]:
        told += _between(one.messages, other.messages, range(at, i), range(there, j))
        at, there = i + 1, j + 1
    return Contexts(tuple(told), len(pairs))


def _question(tape: Tape, exchange: Exchange) -> Reading:
    reading = read(exchange, Incidental(tape))
    if not reading.messages:
        raise UsageError(
            f"tracefork: exchange {exchange.n} of {tape.path.name} is not a call of a model, so "
            f"that it has no context to compare. `tracefork show {tape.path.name}` lists the calls."
        )
    return reading


def _between(
    first: tuple[Spoken, ...], second: tuple[Spoken, ...], here: range, there: range
) -> Iterator[Told]:
    """Yield the differences between two messages that both questions have."""
    pairs = align([first[i].role for i in here], [second[j].role for j in there])
    paired = {here[i]: there[j] for i, j in pairs}
    for i in here:
        before = first[i]
        if i not in paired:
            yield Told("dropped", label(before), i, None, before.words, None)
            continue
        after = second[paired[i]]
        how: How = "truncated" if _is_cut(before.words, after.words) else "changed"
        yield Told(how, label(before), i, paired[i], before.words, after.words)
    for j in there:
        if j not in paired.values():
            yield Told("injected", label(second[j]), None, j, None, second[j].words)


def _is_cut(before: str, after: str) -> bool:
    """Return whether a text is another without a part, but for a mark of the cut."""
    kept = _shared(before, after) + _shared(before[::-1], after[::-1])
    is_shorter = len(before) - len(after) >= _LEAST_CUT
    return is_shorter and kept >= max(len(after) - _LONGEST_MARK, len(after) / 2)


def _shared(before: str, after: str) -> int:
    """Return how many characters both texts begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((i for i, (one, other) in pairs if one != other), min(len(before), len(after)))

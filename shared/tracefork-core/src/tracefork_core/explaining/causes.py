"""Explain why a piece of a request differs between two runs, and what to do about it.

From the surest explanation to the weakest: both runs drew the two values at the same line; both
values are part of an earlier response; an environment variable or the process id differs; the
values look like a known kind (`patterns`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tracefork_core.explaining.advice import ADVICE, FUNCTION_FIXES
from tracefork_core.explaining.changes import word_counts
from tracefork_core.explaining.draws import Draw, found_in
from tracefork_core.explaining.patterns import has_uuid, kind_of

ON_TAPE = frozenset({"clock", "entropy", "random"})
"""The sources whose values a recording puts on its tape."""

UNKNOWN = "unknown: a file, a counter, or a response that tracefork did not capture?"
_NO_CLUE = "Leave it out of the request, or make it the same in every run."
_DRAWN = {"clock": "a read of the clock", "entropy": "random bytes", "random": "random"}
# Shorter texts occur in any other text by accident.
_TELLING_LENGTH = 5


@dataclass(frozen=True, slots=True)
class Cause:
    """Where a difference comes from.

    Attributes:
        what: a short phrase.
        site: the line that drew the value, if a draw was seen.
        on_tape: whether a recording holds the value.
        fix: what to do, or "".
        guessed: whether only the look of the values tells, and values on the tape look so too.
    """

    what: str
    site: str | None
    on_tape: bool
    fix: str = ""
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What is known about one run besides its tape.

    Attributes:
        draws: its random values and clock reads.
        environment: its environment variables, without secrets.
        process: its process id.
    """

    draws: Sequence[Draw] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    process: int = 0

    def until(self, n: int) -> Run:
        """Return this run without the draws after exchange `n` was asked for."""
        if n < 0:
            return self
        return replace(self, draws=[draw for draw in self.draws if draw.asked <= n])


def causes(
    before: str, after: str, runs: tuple[Run, Run], answers: tuple[str, str], n: int
) -> Iterator[Cause]:
    """Yield why two pieces of text differ, at least one cause.

    Args:
        before: the text of the first run.
        after: the text of the second run.
        runs: what is known about both.
        answers: all responses that each run received before.
        n: the exchange whose request it is; -1 if both runs drew the same values.
    """
    # Not `until` for the second run: it may have made this request at another time.
    drawn = list(dict.fromkeys(_drawn(before, after, (runs[0].until(n), runs[1]))))
    if drawn:
        yield from drawn
    elif _is_in(before, answers[0]) and _is_in(after, answers[1]):
        yield Cause("an earlier answer", None, on_tape=True)
    else:
        yield _from_process(before, after, runs) or _by_look(before, after, runs, n)


def _drawn(before: str, after: str, runs: tuple[Run, Run]) -> Iterator[Cause]:
    """Yield the draws that both runs made at the same line and that both texts contain."""
    there = {_line(draw) for draw, _ in found_in(after, runs[1].draws)}
    here = [match for match in found_in(before, runs[0].draws) if _line(match[0]) in there]
    for draw in _telling(here):
        if draw.source in ON_TAPE:
            is_uuid = draw.source == "entropy" and has_uuid(before)
            yield Cause("a UUID" if is_uuid else _DRAWN[draw.source], draw.site, on_tape=True)
        else:
            fix = FUNCTION_FIXES.get(draw.source, "")
            yield Cause(f"{draw.source}()", draw.site, on_tape=False, fix=fix)


def _line(draw: Draw) -> tuple[str, str | None]:
    return draw.source, draw.site


def _telling(matches: Sequence[tuple[Draw, int]]) -> Iterator[Draw]:
    """Yield all draws, but only the best clock read: libraries read it in the same second."""
    yield from (draw for draw, _ in matches if draw.source != "clock")
    ranked = [
        (length, draw.direct, i)
        for i, (draw, length) in enumerate(matches)
        if draw.source == "clock"
    ]
    if ranked:
        yield matches[max(ranked)[2]][0]


def _from_process(before: str, after: str, runs: tuple[Run, Run]) -> Cause | None:
    for name, value in runs[1].environment.items():
        other = runs[0].environment.get(name)
        if value != other and _is_in(value, after) and (other is None or _is_in(other, before)):
            fix = f"Set {name} to the same value in every run, or leave it out of the request."
            return Cause(f"the environment variable {name}", None, on_tape=False, fix=fix)
    texts = zip(runs, (before, after), strict=True)
    if all(run.process and re.search(rf"\b{run.process}\b", text) for run, text in texts):
        advice = ADVICE["process"]
        return Cause(advice.looks, None, on_tape=False, fix=advice.fix)
    return None


def _by_look(before: str, after: str, runs: tuple[Run, Run], n: int) -> Cause:
    kind = kind_of(before, after)
    if kind == "order" or _same_words(before, after):
        return Cause("set order (PYTHONHASHSEED)", None, on_tape=True)
    if kind in (None, "random") and (site := _random_before(n, runs)):
        return Cause("random", site, on_tape=True)
    if kind is None:
        return Cause(UNKNOWN, None, on_tape=False, fix=_NO_CLUE, guessed=True)
    advice = ADVICE[kind]
    what = f"{advice.looks} of unknown origin" if advice.switch else advice.looks
    return Cause(what, None, on_tape=False, fix=advice.fix, guessed=kind != "address")


def _random_before(n: int, runs: tuple[Run, Run]) -> str | None:
    """Return the line that both runs drew from `random` at last before an exchange.

    Several lines if no request lies between them: each may have chosen the word that differs.
    """
    lines = [_last_draws(run.draws, n) for run in runs]
    last = max((lines[0][site] for site in lines[0] if site in lines[1]), default=None)
    sites = [site for site, asked in lines[0].items() if asked == last and site in lines[1]]
    return " or ".join(sites) or None


def _last_draws(draws: Iterable[Draw], n: int) -> dict[str, int]:
    """Return for each line how many exchanges were asked for before its last draw up to `n`."""
    direct = (draw for draw in draws if draw.source == "random" and draw.direct)
    return {draw.site: draw.asked for draw in direct if draw.site and draw.asked <= n}


def _same_words(before: str, after: str) -> bool:
    counts = word_counts(before)
    return counts.total() > 1 and counts == word_counts(after)


def _is_in(piece: str, text: str) -> bool:
    piece = piece.strip(" \t\n\"'.,:;")
    return len(piece) >= _TELLING_LENGTH and piece in text

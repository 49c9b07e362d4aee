"""Why a piece of a request differs between two runs, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tracefork_core.chance.guard.known_sources import DOORS
from tracefork_core.explaining.draws import Draw, found_in
from tracefork_core.explaining.fragments import words
from tracefork_core.explaining.provenance import source_of

ON_TAPE = frozenset({"clock", "entropy", "random"})
"""The sources that a recording puts on its tape."""

UNKNOWN = "not known: a file, a counter, an answer past the seams?"
_CHARS = 5
_DRAWN = {"clock": "a read of the clock", "entropy": "random bytes", "random": "random"}
_UUID = re.compile(r"(?i)\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b")
_DOORS = {door.label: door for door in DOORS}
_A_TIME = "Ask datetime.now(), or run.nondet.now(). Leave out times of files and of other programs."
_A_NUMBER = "Use random, or run.nondet.random(). Leave out what a timer measured."
_SHAPES = {
    "clock": ("a time that no clock was seen to tell", _A_TIME),
    "uuid": ("a UUID that was drawn unseen", "Use uuid.uuid4(), or run.nondet.uuid()."),
    "token": ("a token that was drawn unseen", "Use secrets or os.urandom(), or run.nondet."),
    "random": ("a number drawn unseen, or measured", _A_NUMBER),
    "process": ("the process id", "Leave it out."),
    "address": ("a memory address", "Give the class a __repr__, or leave the object out."),
}
_NO_CLUE = "Keep it out of what is asked, or see that it is the same in every run."


@dataclass(frozen=True, slots=True)
class Cause:
    """Where a difference comes from.

    Attributes:
        what: in a few words.
        site: the line that drew it, where it was seen.
        on_tape: whether a recording holds it.
        fix: what to do, if anything is to be done.
        guessed: whether the looks of a value alone tell, and chance on the tape looks so too.
    """

    what: str
    site: str | None
    on_tape: bool
    fix: str = ""
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of one run besides its tape.

    Attributes:
        draws: what was drawn, and by which line.
        environment: its environment variables, without secrets.
        process: its process id.
    """

    draws: Sequence[Draw] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    process: int = 0

    def until(self, n: int) -> Run:
        """Return what is known of it as it asks exchange `n`, which holds no later draw."""
        if n < 0:
            return self
        return replace(self, draws=[draw for draw in self.draws if draw.asked <= n])


def causes(
    before: str, after: str, runs: tuple[Run, Run], answers: tuple[str, str], n: int
) -> Iterator[Cause]:
    """Yield why two pieces of text differ; one cause at least.

    Args:
        before: what the first run asked there.
        after: what the second asked.
        runs: what is known of them.
        answers: everything that each was answered before.
        n: the exchange that asks; one below all, where random draws are known to be the same.
    """
    # The other run may have asked it at another time, where several ask at once.
    found = list(dict.fromkeys(_drawn(before, after, (runs[0].until(n), runs[1]))))
    if found:
        yield from found
    elif _is_in(before, answers[0]) and _is_in(after, answers[1]):
        yield Cause("an earlier answer", None, on_tape=True)
    else:
        yield _named(before, after, runs) or _by_shape(before, after, runs, n)


def _drawn(before: str, after: str, runs: tuple[Run, Run]) -> Iterator[Cause]:
    """Yield what both runs were seen to draw at the same line, and to spell here."""
    there = {_line(draw) for draw, _ in found_in(after, runs[1].draws)}
    here = [found for found in found_in(before, runs[0].draws) if _line(found[0]) in there]
    for draw in _telling(here):
        if draw.source in ON_TAPE:
            is_uuid = draw.source == "entropy" and _UUID.search(before)
            what = "a UUID" if is_uuid else _DRAWN[draw.source]
            yield Cause(what, draw.site, on_tape=True)
        else:
            door = _DOORS.get(draw.source)
            yield Cause(f"{draw.source}()", draw.site, on_tape=False, fix=door.fix if door else "")


def _line(draw: Draw) -> tuple[str, str | None]:
    return draw.source, draw.site


def _telling(found: Sequence[tuple[Draw, int]]) -> Iterator[Draw]:
    """Yield each draw, and of the clock the most telling: libraries read it in the same second."""
    yield from (draw for draw, _ in found if draw.source != "clock")
    times = [(length, draw.direct, i) for i, (draw, length) in enumerate(found)]
    if best := max((one for one in times if found[one[2]][0].source == "clock"), default=None):
        yield found[best[2]][0]


def _named(before: str, after: str, runs: tuple[Run, Run]) -> Cause | None:
    for name, value in runs[1].environment.items():
        other = runs[0].environment.get(name)
        if value != other and _is_in(value, after) and (other is None or _is_in(other, before)):
            fix = f"Set {name} to one value, or leave it out."
            return Cause(f"the environment variable {name}", None, on_tape=False, fix=fix)
    texts = zip(runs, (before, after), strict=True)
    if all(run.process and re.search(rf"\b{run.process}\b", text) for run, text in texts):
        return Cause("the process id", None, on_tape=False, fix="Leave it out.")
    return None


def _by_shape(before: str, after: str, runs: tuple[Run, Run], n: int) -> Cause:
    shape = source_of(before, after)
    if shape == "order" or _same_words(before, after):
        what = "set order (PYTHONHASHSEED)"
        return Cause(what, None, on_tape=True)
    if shape in (None, "random") and (site := _random_before(n, runs)):
        return Cause("random", site, on_tape=True)
    if shape is None:
        return Cause(UNKNOWN, None, on_tape=False, fix=_NO_CLUE, guessed=True)
    what, fix = _SHAPES[shape]
    return Cause(what, None, on_tape=False, fix=fix, guessed=shape != "address")


def _random_before(n: int, runs: tuple[Run, Run]) -> str | None:
    """Return the lines that drew last from `random` before an exchange, in both runs.

    Those are several where nothing was asked in between: which of them chose a word nobody saw.
    """
    lines = [_lines(run.draws, n) for run in runs]
    last = max((lines[0][site] for site in lines[0] if site in lines[1]), default=None)
    sites = [site for site, asked in lines[0].items() if asked == last and site in lines[1]]
    return " or ".join(sites) or None


def _lines(draws: Iterable[Draw], n: int) -> dict[str, int]:
    """Return how many exchanges were asked for before each line drew last."""
    seen = (draw for draw in draws if draw.source == "random" and draw.direct)
    return {draw.site: draw.asked for draw in seen if draw.site and draw.asked <= n}


def _same_words(before: str, after: str) -> bool:
    counted = words(before)
    return counted.total() > 1 and counted == words(after)


def _is_in(piece: str, text: str) -> bool:
    piece = piece.strip(" \t\n\"'.,:;")
    return len(piece) >= _CHARS and piece in text

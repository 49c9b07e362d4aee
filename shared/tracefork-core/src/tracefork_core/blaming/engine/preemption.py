"""Who caused a failure that something else would have caused anyway: preemption."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracefork_core.blaming.engine.evidence import Asking, Inquiry, World
from tracefork_core.blaming.engine.probe import Probe

_DRAWS = 8
_DIFFERENT = 3


@dataclass(slots=True)
class Alone:
    """A unit drawn again while all the others are held.

    Attributes:
        drawn: times it answered otherwise than recorded.
        flips: trials whose response made the run good, and did so again when it was graded anew.
    """

    drawn: int = 0
    flips: list[int] = field(default_factory=list)


def scan(inquiry: Inquiry) -> Asking[dict[int, Alone]]:
    """Draw each unit again with all others as recorded: one live call each, and no tail.

    A flip is an actual cause, even where a repair would not save a live run (Halpern's 2015
    modification of Halpern & Pearl: what is held is held at its recorded value).
    """
    inquiry.enter("hold")
    answers = inquiry.settings.answers
    world = World(free=answers)
    found = {unit: Alone() for unit in range(inquiry.size)}
    for _ in range(_DRAWS):
        units = [unit for unit in found if _open(inquiry, unit, found[unit])]
        probes = [world.probe(inquiry.all - {unit}, "hold") for unit in units]
        trials = []
        for start in range(0, len(probes), inquiry.settings.batch):
            trials += yield from inquiry.ask(probes[start : start + inquiry.settings.batch])
        for unit, trial in zip(units, trials, strict=True):
            if trial.same.get(unit, False) or trial.undefined is not None:
                continue
            found[unit].drawn += 1
            if trial.failed is False:
                again = Probe(trial.probe.held, ((unit, trial.number),), None, "hold")
                if not (yield from inquiry.mostly_fails(again)):
                    found[unit].flips.append(trial.number)
    return found


def _open(inquiry: Inquiry, unit: int, alone: Alone) -> bool:
    """Return whether a unit may still flip the run: not one that never answers otherwise."""
    changed, drawn = inquiry.book.changed(unit)
    fixed = drawn >= _DRAWS and not changed
    known = bool(alone.flips) or alone.drawn >= _DIFFERENT or fixed
    return not known and unit not in inquiry.settings.answers | inquiry.settings.auxiliary


def preempting(found: dict[int, Alone]) -> tuple[int, int] | None:
    """Return the unit that flips the run most readily, and a trial it did in; None for none."""
    flipping = [unit for unit in sorted(found) if found[unit].flips]
    if not flipping:
        return None
    unit = max(flipping, key=lambda unit: len(found[unit].flips) / found[unit].drawn)
    return unit, found[unit].flips[0]

"""The ranking of a blame: which units have a part in the failure, the likeliest first."""

from __future__ import annotations

import msgspec

from tracefork_core.blaming.report import Report


class Ranked(msgspec.Struct, frozen=True):
    """One unit in the ranking.

    Attributes:
        exchange: the unit.
        words: its name.
        effect: how much it raised the risk for good; `low` and `high` are its interval, if known.
        probability: that it is the decisive one.
        draws: how often it was decided again.
        verdict: "named", "likely", "passed it on" or "".
    """

    exchange: int
    words: str
    effect: float | None
    low: float | None
    high: float | None
    probability: float | None
    draws: int
    verdict: str


def ranking(report: Report) -> list[Ranked]:
    """Return the units of a report, those of its verdict first."""
    verdict, decisive = report.result.verdict, report.result.decisive
    ranked = []
    for unit in report.result.units:
        state = ""
        if unit.unit in verdict.units:
            state = "named" if verdict.certain else "likely"
        elif unit.unit in verdict.mediators:
            state = "passed it on"
        effect = unit.gain
        interval: tuple[float | None, float | None] = None, None
        if decisive is not None and decisive.unit == unit.unit:
            effect, interval = decisive.effect, decisive.interval
        ranked.append(
            Ranked(
                unit.unit,
                report.units[unit.unit].words,
                effect,
                *interval,
                unit.chance,
                unit.redrawn + unit.drawn,
                state,
            )
        )
    order = {"named": 0, "likely": 1, "passed it on": 2, "": 3}
    return sorted(
        ranked, key=lambda one: (order[one.verdict], -(one.probability or 0.0), one.exchange)
    )

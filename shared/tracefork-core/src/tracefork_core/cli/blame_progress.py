"""How far a blame is: forks, calls, dollars, and who is likeliest so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from tracefork_core.cli import figures, screen
from tracefork_core.cli.progress import progress

if TYPE_CHECKING:
    from tracefork_core.blaming.hearing import Progress

_LEAST = 0.02


@contextmanager
def following(*, streamed: bool = False) -> Iterator[Callable[[Progress], None]]:
    """Give what a blame tells how far it is: for people, or as lines of JSON on stdout."""
    if streamed:
        yield lambda state: screen.say_line({"progress": msgspec.to_builtins(state)})
        return
    with progress() as tell:
        yield lambda state: tell(words(state))


def words(state: Progress) -> str:
    """Return "certify · 31 forks · 140 live calls · likeliest: exchange 3 (97%) · 80.0 s"."""
    standing = state.standing
    parts = [standing.phase] if standing else []
    parts.append(figures.several(state.forks, "fork"))
    parts.append(figures.several(state.calls, "live call"))
    if state.left is not None:
        parts.append(f"${state.usd:.2f} of ${state.usd + state.left:.2f}")
    elif state.usd:
        parts.append(f"${state.usd:.4f}")
    if standing is not None and standing.unit is not None:
        parts.append(f"likeliest: exchange {standing.unit} ({standing.chance:.0%})")
    parts.append(figures.duration(state.seconds))
    if (eta := _eta(state)) is not None:
        parts.append(f"at most {figures.duration(eta)} left")
    return " · ".join(parts)


def _eta(state: Progress) -> float | None:
    """Return how long what is left of the budget will last; None where nothing tells."""
    if not state.share or state.share < _LEAST:
        return None
    return state.seconds * (1 - state.share) / state.share

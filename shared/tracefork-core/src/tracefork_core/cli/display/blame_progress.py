"""Progress of a blame: forks, calls, dollars, and the most likely exchange so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.progress import clock, progress

if TYPE_CHECKING:
    from tracefork_core.blaming.trials.runner import Progress

_LEAST = 0.02


@contextmanager
def following(
    *, streamed: bool = False, expected: int | None = None
) -> Iterator[Callable[[Progress], None]]:
    """Provide the callback that shows progress: for people, or as lines of JSON on stdout.

    Args:
        streamed: write lines of JSON.
        expected: the likely total of live calls.
    """
    if streamed:
        yield lambda state: screen.say_line({"progress": msgspec.to_builtins(state)})
        return
    pace = _Pace(expected)
    with progress() as tell:

        def watch(state: Progress) -> None:
            tell(words(state, pace.left(state)), *share(state))

        yield watch


def words(state: Progress, left: str = "") -> str:
    """Return "certify · 31 forks · 140 live calls · likely: exchange 3 (97%) · 80.0 s"."""
    standing = state.standing
    parts = [standing.phase] if standing else []
    parts.append(figures.several(state.forks, "fork"))
    parts.append(figures.several(state.calls, "live call"))
    if state.left is not None:
        parts.append(f"${state.usd:.2f} spent, ${max(0.0, state.left):.2f} left")
    elif state.usd:
        parts.append(f"${state.usd:.4f}")
    if standing is not None and standing.unit is not None:
        parts.append(f"likely: exchange {standing.unit} ({standing.chance:.0%})")
    parts.append(figures.duration(state.seconds))
    return " · ".join([*parts, left] if left else parts)


def share(state: Progress) -> tuple[float | None, str]:
    """Return the fraction for a bar and what it measures; None before anything is known.

    The number of forks is not known beforehand: without a budget the bar shows the certainty.
    """
    if state.share is not None:
        return min(1.0, state.share), "of the budget"
    standing = state.standing
    if standing is None or not standing.chance:
        return None, ""
    subject = "no exchange" if standing.unit is None else f"exchange {standing.unit}"
    return standing.chance, f"sure that {subject} is decisive"


class _Pace:
    """Estimates the time left from forks made in this process, not those read from the journal."""

    def __init__(self, expected: int | None) -> None:
        self._expected = expected
        self._base: Progress | None = None

    def left(self, state: Progress) -> str:
        """Return "at most 2:00 left" with a budget, "about 2:00 left" with an estimate, else "".

        The count starts at the forks that the journal already had.
        """
        if self._base is None or state.forks == self._base.forks:
            self._base = state
        base = self._base
        seconds = state.seconds - base.seconds
        if state.share is not None and base.share is not None:
            used = state.share - base.share
            if used < _LEAST:
                return ""
            return f"at most {clock(seconds * max(0.0, 1 - state.share) / used)} left"
        calls = state.calls - base.calls
        if self._expected is None or not calls or state.calls >= self._expected:
            return ""
        return f"about {clock(seconds / calls * (self._expected - state.calls))} left"

"""The steps that cases are built from. A state is a set of flags, each one bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tracefork_core.bench.causal_program import FALSE_FAIL, MISS, Program, Step

Policy = Callable[[int], tuple[float, ...]]
Move = Callable[[int, int], int]
StepOf = Callable[[int], Step]
"""Makes a step for that many states."""

_DECOYS = 3
"""One in so many of the steps that do nothing draws, nevertheless, something else each time."""


def step(policy: Policy, move: Move) -> StepOf:
    """Return a step whose policy is a function of the state, as its move is with the response."""

    def of(states: int) -> Step:
        policies = tuple(policy(state) for state in range(states))
        responses = max(2, *map(len, policies))
        moves = tuple(tuple(move(s, x) for x in range(responses)) for s in range(states))
        return Step(policies, moves)

    return of


def still(state: int, response: int) -> int:
    """Stay in the state, whatever the response is."""
    return state


PLAIN = step(lambda state: (1.0,), still)
"""Always answers the same, and does nothing."""
DECOY = step(lambda state: (0.5, 0.3, 0.2), still)
"""Answers something else each time, and does nothing."""


def fault(flag: int, chance: float) -> StepOf:
    """Raise a flag with some chance: response 1."""
    return step(lambda state: (1 - chance, chance), lambda s, x: s | flag * (x == 1))


def echo(flag: int, heals: float, slips: float) -> StepOf:
    """Say whether a flag is up, and be believed: what it says is what counts from there on."""

    def policy(state: int) -> tuple[float, ...]:
        return (heals, 1 - heals) if state & flag else (1 - slips, slips)

    return step(policy, lambda s, x: s | flag if x == 1 else s & ~flag)


def symptom(flag: int, shows: float) -> StepOf:
    """Say that a flag is up, mostly, to no effect."""
    return step(lambda s: (1 - shows, shows) if s & flag else (1.0, 0.0), still)


def correction(flag: int, chance: float) -> StepOf:
    """Take a flag down that is up, with some chance: response 1."""

    def policy(state: int) -> tuple[float, ...]:
        return (1 - chance, chance) if state & flag else (1.0, 0.0)

    return step(policy, lambda s, x: s & ~flag if x == 1 else s)


def backup(flag: int, chance: float) -> StepOf:
    """Raise a flag where it is not up yet: it would have failed anyway, another way."""

    def policy(state: int) -> tuple[float, ...]:
        return (1.0, 0.0) if state & flag else (1 - chance, chance)

    return step(policy, lambda s, x: s | flag * (x == 1))


def handshake(first: int, differs: int, chance: float) -> StepOf:
    """Answer as the first flag says, or the contrary with some chance: then both differ."""

    def policy(state: int) -> tuple[float, ...]:
        return (chance, 1 - chance) if state & first else (1 - chance, chance)

    return step(policy, lambda s, x: s | differs if bool(s & first) != (x == 1) else s & ~differs)


def graded(states: int, bad: Callable[[int], bool]) -> tuple[float, ...]:
    """Return the chances of being graded as failed, where some last states are bad."""
    return tuple(1 - MISS if bad(state) else FALSE_FAIL for state in range(states))


def planted(
    length: int,
    random: Random,
    fails: tuple[float, ...],
    steps: Mapping[int, StepOf],
    others: StepOf | None = None,
) -> Program:
    """Return a program with steps at their places, and between them decoys and plain steps.

    Args:
        length: how many steps it has.
        random: chooses which of the others are decoys.
        fails: the chance of failure by the last state.
        steps: the planted steps by their place.
        others: what stands between them instead, where it is not decoys.
    """
    free = [place for place in range(length) if place not in steps]
    decoys = set(random.sample(free, round(len(free) / _DECOYS)))
    between = {place: others or (DECOY if place in decoys else PLAIN) for place in free}
    every = {**between, **steps}
    return Program(tuple(every[place](len(fails)) for place in range(length)), fails)

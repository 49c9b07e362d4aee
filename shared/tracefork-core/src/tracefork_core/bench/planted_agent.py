"""Agents that are finite tables, so that their exact risk can be computed.

At each step the agent is in a state, draws a response from the policy of that state, and moves to
the next state. The grade of the last state may err. A forced step gives its response in any state,
as a held response does in a real agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random


def chance(name: str) -> Random:
    """Return a random generator that a name seeds, the same on every machine."""
    return Random(name)  # noqa: S311 - a simulation must be reproducible


FALSE_FAIL = MISS = 0.03
"""Rates at which a good run is graded as failed and a bad one as passed, unless a case differs."""


@dataclass(frozen=True, slots=True)
class Step:
    """One response of an agent.

    Attributes:
        policy: probability of each response by state: `policy[state][response]`.
        move: next state: `move[state][response]`. It may have responses that no policy draws, to be
            forced.
    """

    policy: tuple[tuple[float, ...], ...]
    move: tuple[tuple[int, ...], ...]

    def draw(self, state: int, random: Random) -> int:
        """Draw a response in a state."""
        at, chances = random.random(), self.policy[state]
        for response, chance in enumerate(chances):
            at -= chance
            if at < 0:
                return response
        return max(response for response, chance in enumerate(chances) if chance)


@dataclass(frozen=True, slots=True)
class Program:
    """An agent from its first state to its grade.

    Attributes:
        steps: the steps in order; all have the same states.
        fails: probability that the run is graded as failed, by its last state.
    """

    steps: tuple[Step, ...]
    fails: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.steps)

    def risk(self, forced: Mapping[int, int]) -> float:
        """Return the exact probability of failure with some responses forced and the rest live."""
        chances = {0: 1.0}
        for number, step in enumerate(self.steps):
            after: dict[int, float] = {}
            response = forced.get(number)
            for state, chance in chances.items():
                move = step.move[state]
                if response is not None:
                    after[move[response]] = after.get(move[response], 0.0) + chance
                    continue
                for share, to in zip(step.policy[state], move, strict=False):
                    if share:
                        after[to] = after.get(to, 0.0) + chance * share
            chances = after
        return sum(chance * self.fails[state] for state, chance in chances.items())

    def run(
        self, random: Random, forced: Mapping[int, int], until: int | None = None
    ) -> tuple[list[int], int]:
        """Run to step `until`, inclusive, or the end; return the responses and the last state."""
        state, responses = 0, []
        for number, step in enumerate(self.steps[: None if until is None else until + 1]):
            response = forced.get(number)
            if response is None:
                response = step.draw(state, random)
            responses.append(response)
            state = step.move[state][response]
        return responses, state

    def graded(self, random: Random, state: int) -> bool:
        """Draw whether a run that ended in this state is graded as failed."""
        return random.random() < self.fails[state]


THRESHOLD = 0.30
"""The least responsibility that makes a step the decisive one."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded run of a program that failed: one response for each step."""

    program: Program
    responses: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.responses)

    def risk(self, held: Iterable[int]) -> float:
        """Return the exact probability of failure with these steps held and the rest live."""
        return self.program.risk({step: self.responses[step] for step in held})

    def curve(self) -> list[float]:
        """Return the risk with each prefix held: n + 1 values, the last with every step held."""
        return [self.risk(range(position)) for position in range(len(self) + 1)]

    def responsibility(self) -> list[float]:
        """Return how much each step raised the risk for good, so that no later step undid it."""
        return responsibility(self.curve())

    def decisive(self) -> int | None:
        """Return the step with the largest responsibility; None if that is below `THRESHOLD`."""
        shares = self.responsibility()
        largest = max(shares)
        return shares.index(largest) if largest >= THRESHOLD else None


def changes(curve: Sequence[float]) -> list[float]:
    """Return the differences of neighbouring values, one fewer than there are values."""
    return [after - before for before, after in pairwise(curve)]


def responsibility(curve: Sequence[float]) -> list[float]:
    """Return R_i = M(i+1) - M(i), where M(i) is the lowest value of the curve from i on."""
    lowest = list(curve)
    for position in reversed(range(len(curve) - 1)):
        lowest[position] = min(lowest[position], lowest[position + 1])
    return changes(lowest)


Policy = Callable[[int], tuple[float, ...]]
Move = Callable[[int, int], int]
StepOf = Callable[[int], Step]
"""Makes a step for a number of states."""

_DECOYS = 3
"""One in three of the steps that do nothing still varies its answer."""


def step(policy: Policy, move: Move) -> StepOf:
    """Return a step from a policy of the state and a move of the state and the response."""

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
"""A step that always gives the same answer and has no effect."""
DECOY = step(lambda state: (0.5, 0.3, 0.2), still)
"""A step that varies its answer and has no effect."""


def fault(flag: int, chance: float) -> StepOf:
    """Return a step that raises a flag with some probability, by response 1."""
    return step(lambda state: (1 - chance, chance), lambda s, x: s | flag * (x == 1))


def echo(flag: int, heals: float, slips: float) -> StepOf:
    """Return a step that says whether a flag is up; its answer sets the flag from there on."""

    def policy(state: int) -> tuple[float, ...]:
        return (heals, 1 - heals) if state & flag else (1 - slips, slips)

    return step(policy, lambda s, x: s | flag if x == 1 else s & ~flag)


def symptom(flag: int, shows: float) -> StepOf:
    """Return a step that mostly says that a flag is up, without an effect."""
    return step(lambda s: (1 - shows, shows) if s & flag else (1.0, 0.0), still)


def correction(flag: int, chance: float) -> StepOf:
    """Return a step that lowers a raised flag with some probability, by response 1."""

    def policy(state: int) -> tuple[float, ...]:
        return (1 - chance, chance) if state & flag else (1.0, 0.0)

    return step(policy, lambda s, x: s & ~flag if x == 1 else s)


def backup(flag: int, chance: float) -> StepOf:
    """Return a step that raises a flag unless it is up: a second way to fail."""

    def policy(state: int) -> tuple[float, ...]:
        return (1.0, 0.0) if state & flag else (1 - chance, chance)

    return step(policy, lambda s, x: s | flag * (x == 1))


def handshake(first: int, differs: int, chance: float) -> StepOf:
    """Return a step that answers by the first flag, but sets `differs` if it contradicts it."""

    def policy(state: int) -> tuple[float, ...]:
        return (chance, 1 - chance) if state & first else (1 - chance, chance)

    return step(policy, lambda s, x: s | differs if bool(s & first) != (x == 1) else s & ~differs)


def graded(states: int, bad: Callable[[int], bool]) -> tuple[float, ...]:
    """Return the probability of a failing grade for each last state, given which are bad."""
    return tuple(1 - MISS if bad(state) else FALSE_FAIL for state in range(states))


def planted(
    length: int,
    random: Random,
    fails: tuple[float, ...],
    steps: Mapping[int, StepOf],
    others: StepOf | None = None,
) -> Program:
    """Return a program with planted steps, and decoys and plain steps between them.

    Args:
        length: number of steps.
        random: chooses which of the other steps are decoys.
        fails: probability of failure by the last state.
        steps: the planted steps by their index.
        others: the step to use for all others instead of decoys and plain steps.
    """
    free = [place for place in range(length) if place not in steps]
    decoys = set(random.sample(free, round(len(free) / _DECOYS)))
    between = {place: others or (DECOY if place in decoys else PLAIN) for place in free}
    every = {**between, **steps}
    return Program(tuple(every[place](len(fails)) for place in range(length)), fails)

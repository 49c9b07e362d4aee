"""Agents that are finite tables: what they would do can be computed, not only tried.

At each step the agent is in a state, draws a response from the policy of that state, and moves on.
How the last state is graded may err. A step that is forced gives that response in whatever state
it is met, which is what holding a recorded response does to a real agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random


def chance(name: str) -> Random:
    """Return a source of chance that a name seeds, alike on every machine."""
    return Random(name)  # noqa: S311 - what is simulated must come out again


FALSE_FAIL = MISS = 0.03
"""How often a good run is graded as failed, and a bad one as passed, unless a case says so."""


@dataclass(frozen=True, slots=True)
class Step:
    """One response of an agent.

    Attributes:
        policy: the chance of each response, by state: `policy[state][response]`.
        move: the next state: `move[state][response]`. A response may be forced that no policy
            draws.
    """

    policy: tuple[tuple[float, ...], ...]
    move: tuple[tuple[int, ...], ...]

    def draw(self, state: int, random: Random) -> int:
        """Return a response, drawn in a state."""
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
        steps: in the order they are run; all of them have the same states.
        fails: the chance that the run is graded as failed, by the last state.
    """

    steps: tuple[Step, ...]
    fails: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.steps)

    def risk(self, forced: Mapping[int, int]) -> float:
        """Return the exact chance of failure where some responses are forced, the rest live."""
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
        """Run it, to step `until` or the end; return the responses, and the state it is left in."""
        state, responses = 0, []
        for number, step in enumerate(self.steps[: None if until is None else until + 1]):
            response = forced.get(number)
            if response is None:
                response = step.draw(state, random)
            responses.append(response)
            state = step.move[state][response]
        return responses, state

    def graded(self, random: Random, state: int) -> bool:
        """Return whether a run that ended in this state is graded as failed, this time."""
        return random.random() < self.fails[state]


THRESHOLD = 0.30
"""The least responsibility that makes a step the decisive one."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run of a program that failed, and was recorded."""

    program: Program
    responses: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.responses)

    def risk(self, held: Iterable[int]) -> float:
        """Return the chance of failure where these steps keep their response, the rest live."""
        return self.program.risk({step: self.responses[step] for step in held})

    def curve(self) -> list[float]:
        """Return the risk after each prefix: of length n + 1, the last with everything held."""
        return [self.risk(range(position)) for position in range(len(self) + 1)]

    def responsibility(self) -> list[float]:
        """Return how much each step changed the risk for good: nothing later undid it."""
        return responsibility(self.curve())

    def decisive(self) -> int | None:
        """Return the step that made the run fail; None if no step did."""
        shares = self.responsibility()
        largest = max(shares)
        return shares.index(largest) if largest >= THRESHOLD else None


def changes(curve: Sequence[float]) -> list[float]:
    """Return the differences of neighbours."""
    return [after - before for before, after in pairwise(curve)]


def responsibility(curve: Sequence[float]) -> list[float]:
    """Return the differences of the curve's lowest values from each position on."""
    lowest = list(curve)
    for position in reversed(range(len(curve) - 1)):
        lowest[position] = min(lowest[position], lowest[position + 1])
    return changes(lowest)


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

"""Agents that are finite tables: what they would do can be computed, not only tried.

At each step the agent is in a state, draws a response from the policy of that state, and moves on.
How the last state is graded may err. A step that is forced gives that response in whatever state
it is met, which is what holding a recorded response does to a real agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

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

"""Small agents with a known fault, and their forks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from tracefork_core.blaming.engine.engine import blame
from tracefork_core.blaming.engine.evidence import Standing
from tracefork_core.blaming.engine.probe import Exhausted, Probe, Settings, Trial
from tracefork_core.blaming.engine.result import Result

Draw = Callable[[Sequence[int], Random], int]
"""A step: takes the responses before it and returns its own. 0 is good, 1 is bad."""


def errs(chance: float) -> Draw:
    """Return a step that answers 1 with a probability."""
    return lambda before, random: int(random.random() < chance)


def decoy(before: Sequence[int], random: Random) -> int:
    """Return a random response, which differs each time."""
    return random.randrange(1000)


def echo(of: int) -> Draw:
    """Return a step that repeats another."""
    return lambda before, random: before[of]


@dataclass(slots=True)
class Agent:
    """An agent and a recorded run of it that failed.

    Attributes:
        steps: its steps.
        recorded: the recorded responses.
        fails: probability of failure, given all responses.
        breaks: probability that a fork has no outcome.
        random: source of all live draws.
        answers: the responses of each fork.
    """

    steps: Sequence[Draw]
    recorded: Sequence[int]
    fails: Callable[[Sequence[int]], float]
    breaks: float = 0.0
    random: Random = field(default_factory=lambda: Random(0))
    answers: list[list[int]] = field(default_factory=list)

    def fork(self, probe: Probe) -> Trial:
        """Run one probe."""
        given = dict(probe.given)
        assert not given.keys() & probe.held
        last = len(self.steps) - 1 if probe.until is None else probe.until
        now: list[int] = []
        same: dict[int, bool] = {}
        for unit, step in enumerate(self.steps[: last + 1]):
            as_recorded = now == list(self.recorded[:unit])
            if unit in probe.held:
                now.append(self.recorded[unit])
            elif unit in given:
                now.append(self.answers[given[unit]][unit])
            else:
                now.append(step(now, self.random))
                if as_recorded:
                    same[unit] = now[unit] == self.recorded[unit]
        self.answers.append(now)
        number, calls = len(self.answers) - 1, last + 1 - len(probe.held | given.keys())
        if probe.until is not None:
            return Trial(number, probe, None, same, calls=1)
        if self.random.random() < self.breaks:
            return Trial(number, probe, None, same, "it broke off", calls)
        return Trial(number, probe, self.random.random() < self.fails(now), same, calls=calls)


def judged(
    agent: Agent,
    seed: int = 0,
    settings: Settings | None = None,
    groups: Sequence[Sequence[int]] = (),
    budget: int | None = None,
    watch: Callable[[Standing], None] = lambda standing: None,
) -> Result:
    """Return the result of a blame; the budget is in forks."""
    agent.random, agent.answers = Random(f"world {seed}"), []
    asking = blame([1.0] * len(agent.steps), Random(seed), settings, groups, watch)
    left = float("inf") if budget is None else budget
    try:
        probes = next(asking)
        while True:
            done = [agent.fork(probe) for probe in probes[: int(min(left, len(probes)))]]
            left -= len(done)
            probes = (
                asking.send(done) if len(done) == len(probes) else asking.throw(Exhausted(done))
            )
    except StopIteration as stopped:
        result = stopped.value
        assert isinstance(result, Result)
        return result


def plain(size: int, **special: Draw) -> list[Draw]:
    """Return steps without an effect, some of them decoys, with special ones at indices: u3=..."""
    steps: list[Draw] = [decoy if unit % 3 == 2 else errs(0.0) for unit in range(size)]
    for name, step in special.items():
        steps[int(name.removeprefix("u"))] = step
    return steps


def ran(size: int, *bad: int) -> list[int]:
    """Return the responses of a run that was bad at some steps."""
    return [int(unit in bad) for unit in range(size)]


def noisy(failed: object, noise: float = 0.03) -> float:
    """Return the probability of failure under an oracle that errs a little."""
    return 1 - noise if failed else noise


def single(size: int = 8, root: int = 3, noise: float = 0.03) -> Agent:
    """Return an agent that one step makes fail; the next step but one repeats it."""
    steps = plain(size, **{f"u{root}": errs(0.15), f"u{root + 2}": echo(root)})
    return Agent(steps, ran(size, root, root + 2), lambda run: noisy(run[root + 2] == 1, noise))


def both(size: int = 8, first: int = 2, second: int = 5) -> Agent:
    """Return an agent that two steps together make fail."""
    steps = plain(size, **{f"u{first}": errs(0.25), f"u{second}": errs(0.25)})
    return Agent(steps, ran(size, first, second), lambda run: noisy(run[first] == 1 == run[second]))


def either(size: int = 8, first: int = 2, second: int = 5) -> Agent:
    """Return an agent that each of two steps makes fail."""
    steps = plain(size, **{f"u{first}": errs(0.15), f"u{second}": errs(0.15)})
    return Agent(steps, ran(size, first, second), lambda run: noisy(1 in (run[first], run[second])))


def preempted(size: int = 8, first: int = 2, backup: int = 5) -> Agent:
    """Return an agent whose failing step prevents another from failing the run."""
    spoil: Draw = lambda before, random: int(before[first] == 0)  # noqa: E731 - one line is clear
    steps = plain(size, **{f"u{first}": errs(0.5), f"u{backup}": spoil})
    return Agent(steps, ran(size, first), lambda run: noisy(1 in (run[first], run[backup])))


def careless(size: int, fails: float) -> Agent:
    """Return an agent whose outcome does not depend on its responses."""
    return Agent(plain(size), ran(size), lambda run: fails)


def drifting(size: int = 12) -> Agent:
    """Return an agent that gets a little worse at every step."""
    steps = [errs(0.5)] * size
    bad = [1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1][:size]
    return Agent(
        steps,
        bad,
        lambda run: (
            noisy(sum(run) / size > 0.75 and sum(run) > 0) * 0.5
            + 0.5 * min(1.0, max(0.0, (sum(run) / size - 0.3) / 0.5))
        ),
    )

"""The planted cases. Each has an agent with a known fault, a failed run of it, and the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from tracefork_core.bench import scenarios
from tracefork_core.bench.planted_agent import Recorded, chance
from tracefork_core.bench.scenarios import Story, Truth

SIZES = (8, 16, 32)
_TRIES = 200_000


@dataclass(frozen=True, slots=True)
class Instance:
    """One recorded run of a case, with its truth."""

    case: str
    size: int
    seed: int
    recorded: Recorded
    truth: Truth

    @property
    def name(self) -> str:
        """The name that seeds all random draws about this instance."""
        return f"{self.case}/{self.size}/{self.seed}"


@dataclass(frozen=True, slots=True)
class Case:
    """A planted structure.

    Attributes:
        number: row in the published table.
        name: name for `--cases`.
        rule: smallest accepted share of right full verdicts, 0 to 1.
        tell: makes the story of one run with a given number of steps.
        size: its number of steps, if it has only one size.
        free: whether the right verdict must take no live call.
    """

    number: int
    name: str
    rule: float
    tell: Callable[[int, Random], Story] = field(repr=False)
    size: int | None = None
    free: bool = False

    def sizes(self, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes to run this case at: the wanted ones, or its own."""
        return wanted if self.size is None else (self.size,)

    def instance(self, size: int, seed: int) -> Instance:
        """Return the recorded run that a seed draws, with its faults, decoys and responses."""
        random = chance(f"{self.name}/{size}/{seed}")
        story = self.tell(size, random)
        recorded = _record(story, random)
        return Instance(self.name, size, seed, recorded, story.truth)


CASES: Mapping[str, Case] = {
    case.name: case
    for case in (
        Case(1, "echo", 0.95, scenarios.echo),
        Case(2, "delayed", 0.95, scenarios.delayed),
        Case(3, "background", 0.95, scenarios.background),
        Case(4, "and-2", 0.95, scenarios.and_2),
        Case(5, "and-3", 0.90, scenarios.and_3),
        Case(6, "or", 0.90, scenarios.either),
        Case(7, "preemption", 0.90, scenarios.preemption),
        Case(8, "recovery", 0.95, scenarios.recovery),
        Case(9, "hopeless", 0.95, scenarios.hopeless),
        Case(9, "coin", 0.95, scenarios.coin),
        Case(9, "toss", 0.95, scenarios.toss),
        Case(10, "flaky", 1.00, scenarios.flaky, free=True),
        Case(11, "xor", 0.90, scenarios.xor),
        Case(12, "drift", 1.00, scenarios.drift),
        Case(13, "mixed", 0.90, scenarios.mixed),
        Case(15, "cold", 1.00, scenarios.cold),
        Case(15, "escalated", 0.95, scenarios.escalated),
        Case(16, "fixture-echo", 1.00, scenarios.fixture_echo, size=7),
        Case(16, "fixture-joint", 1.00, scenarios.fixture_joint, size=7),
        Case(16, "fixture-all", 1.00, scenarios.fixture_all, size=7),
    )
}


def _record(story: Story, random: Random) -> Recorded:
    """Run the program until a failed run matches the story: a sample of all such runs.

    Raises:
        RuntimeError: none of 200,000 runs matches.
    """
    if story.fixed is not None:
        return Recorded(story.program, story.fixed)
    for _ in range(_TRIES):
        responses, state = story.program.run(random, {})
        if not story.program.graded(random, state):
            continue
        if any(responses[step] != response for step, response in story.responses.items()):
            continue
        recorded = Recorded(story.program, tuple(responses))
        if story.holds is None or story.holds(recorded):
            return recorded
    raise RuntimeError(f"no run in {_TRIES} tells this story: {story.responses}")

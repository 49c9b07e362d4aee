"""The story of each planted case: its agent, its recorded run, and the right verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from tracefork_core.bench.planted_agent import (
    PLAIN,
    Program,
    Recorded,
    backup,
    chance,
    correction,
    fault,
    graded,
    handshake,
    planted,
    step,
    symptom,
)
from tracefork_core.bench.planted_agent import echo as echoing

NOBODY: frozenset[int] = frozenset()
INNOCENT = frozenset({"fails anyway", "not reproducible", "diffuse", "inert", "undecided"})
"""Kinds of verdict that blame no unit; at most they suggest where to look first."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A right verdict.

    Attributes:
        kind: its kind.
        units: exactly the units that it names.
        mediators: the units that pass the fault on.
        optional: units that may or may not be among the mediators.
    """

    kind: str
    units: frozenset[int] = NOBODY
    mediators: frozenset[int] = NOBODY
    optional: frozenset[int] = NOBODY

    def is_given_by(
        self, kind: str, units: Collection[int], mediators: Collection[int] = ()
    ) -> bool:
        """Return whether a verdict gives this answer."""
        named = frozenset(mediators) - self.optional
        return (kind, frozenset(units), named) == (self.kind, self.units, self.mediators)


@dataclass(frozen=True, slots=True)
class Truth:
    """The right verdicts about a run.

    Attributes:
        answers: the right full verdicts; the first one was planted.
        decisive: the right first suspects: units where the risk jumps for good; None for no unit.
    """

    answers: tuple[Answer, ...]
    decisive: frozenset[int | None]

    @property
    def guilty(self) -> frozenset[int]:
        """The units that may be named."""
        return frozenset().union(*(answer.units | answer.mediators for answer in self.answers))

    def accuses_falsely(self, kind: str, units: Collection[int], decisive: int | None) -> bool:
        """Return whether a verdict blames a unit that has no part in the failure."""
        named = {*units} if decisive is None else {*units, decisive}
        return kind not in INNOCENT and not self.guilty.issuperset(named)


def nobody(*kinds: str) -> Truth:
    """Return a truth in which no unit is to blame."""
    return Truth(tuple(Answer(kind) for kind in kinds), frozenset({None}))


def one(unit: int, *mediators: int) -> Truth:
    """Return a truth in which one unit is to blame, and others only passed the fault on."""
    answer = Answer("single", frozenset({unit}), frozenset(mediators))
    return Truth((answer,), frozenset({unit}))


def several(kind: str, units: Collection[int], decisive: int | None) -> Truth:
    """Return a truth in which several units are to blame, together or each alone."""
    return Truth((Answer(kind, frozenset(units)),), frozenset({decisive}))


A, B, C = 1, 2, 4
"""The flags of a state."""
_ROOT = 0.15
"""Probability of a fault that is enough alone."""
_HOPELESS = 0.92
_NAMES_NOBODY = ("fails anyway", "not reproducible", "diffuse", "undecided")
_LEAST = 0.2
"""Every step of a drift has a responsibility below this."""


@dataclass(frozen=True, slots=True)
class Story:
    """A program, what its recorded run did, and the truth about it.

    Attributes:
        program: the agent.
        truth: the right verdicts.
        responses: responses that the recorded run must have, by step.
        holds: a further condition on the recorded run.
        fixed: all responses of the recorded run, if it is not drawn.
    """

    program: Program
    truth: Truth
    responses: Mapping[int, int] = field(default_factory=dict)
    holds: Callable[[Recorded], bool] | None = None
    fixed: tuple[int, ...] | None = None


def echo(n: int, random: Random) -> Story:
    """Plant a fault, and a later step that repeats it and decides the outcome."""
    root, later = _places(n, 2, random)
    steps = {root: fault(A, _ROOT), later: echoing(A, heals=0.05, slips=0.02)}
    program = planted(n, random, graded(2, bool), steps)
    return Story(program, one(root, later), {root: 1, later: 1})


def delayed(n: int, random: Random) -> Story:
    """Plant an early fault that shows late, in a step without an effect."""
    root, late = random.randrange(n // 2), random.randrange(n * 3 // 4, n)
    steps = {root: fault(A, _ROOT), late: symptom(A, shows=0.95)}
    program = planted(n, random, graded(2, bool), steps)
    return Story(program, one(root), {root: 1, late: 1})


def background(n: int, random: Random) -> Story:
    """Plant one fault where every other step could have failed too but did not."""
    (root,) = _places(n, 1, random)
    risky = fault(A, 1 - 0.75 ** (1 / (n - 1)))
    program = planted(n, random, graded(2, bool), {root: fault(A, 0.2)}, others=risky)
    return Story(program, one(root), {place: int(place == root) for place in range(n)})


def and_2(n: int, random: Random) -> Story:
    """Plant two faults that are harmless alone."""
    first, second = _places(n, 2, random)
    steps = {first: fault(A, 0.25), second: fault(B, 0.25)}
    program = planted(n, random, graded(4, lambda state: state == A | B), steps)
    return Story(program, several("joint", (first, second), second), {first: 1, second: 1})


def and_3(n: int, random: Random) -> Story:
    """Plant three faults that are harmless unless all of them happen."""
    places = _places(n, 3, random)
    steps = {place: fault(flag, 0.35) for place, flag in zip(places, (A, B, C), strict=True)}
    program = planted(n, random, graded(8, lambda state: state == A | B | C), steps)
    return Story(program, several("joint", places, places[-1]), dict.fromkeys(places, 1))


def either(n: int, random: Random) -> Story:
    """Plant two faults, each of which is enough alone."""
    first, second = _places(n, 2, random)
    steps = {first: fault(A, _ROOT), second: fault(B, _ROOT)}
    program = planted(n, random, graded(4, bool), steps)
    return Story(program, several("over-determined", (first, second), first), {first: 1, second: 1})


def preemption(n: int, random: Random) -> Story:
    """Plant a fault, and a step that would have failed the run without it."""
    first, second = _places(n, 2, random)
    steps = {first: fault(A, 0.5), second: backup(A, 0.95)}
    program = planted(n, random, graded(2, bool), steps)
    truth = Truth((Answer("preempted", frozenset({first})),), frozenset({None, first}))
    return Story(program, truth, {first: 1, second: 0})


def recovery(n: int, random: Random) -> Story:
    """Plant an error that a later step corrects, and a fault after it."""
    early, corrected, root = _places(n, 3, random)
    steps = {early: fault(A, 0.2), corrected: correction(A, 0.6), root: fault(B, _ROOT)}
    program = planted(n, random, graded(4, bool), steps)
    return Story(program, one(root), {early: 1, corrected: 1, root: 1})


def hopeless(n: int, random: Random) -> Story:
    """Make a task that fails nearly always, whatever the agent does."""
    return Story(planted(n, random, (_HOPELESS,), {}), nobody("fails anyway"))


def coin(n: int, random: Random) -> Story:
    """Make the outcome a coin that is tossed after the last step."""
    return Story(planted(n, random, (0.5,), {}), nobody(*_NAMES_NOBODY))


def toss(n: int, random: Random) -> Story:
    """Make the outcome a coin that one step tosses."""
    (place,) = _places(n, 1, random)
    truth = replace(nobody(*_NAMES_NOBODY), decisive=frozenset({place, None}))
    return Story(planted(n, random, graded(2, bool), {place: fault(A, 0.5)}), truth)


def flaky(n: int, random: Random) -> Story:
    """Record a good run that was graded as failed."""
    root, later = _places(n, 2, random)
    steps = {root: fault(A, _ROOT), later: echoing(A, heals=0.05, slips=0.02)}
    program = planted(n, random, graded(2, bool), steps)
    return Story(program, nobody("not reproducible"), {later: 0})


def xor(n: int, random: Random) -> Story:
    """Plant two steps that should agree but did not."""
    first, second = _places(n, 2, random)
    steps = {first: fault(A, 0.5), second: handshake(A, B, 0.1)}
    program = planted(n, random, graded(4, lambda state: bool(state & B)), steps)
    answers = Answer("single", frozenset({second})), Answer("joint", frozenset({first, second}))
    truth = Truth(answers, frozenset({second}))
    return Story(program, truth, holds=lambda run: run.decisive() == second)


def drift(n: int, random: Random) -> Story:
    """Make a run that gets a little worse at many steps, with no decisive one."""
    low, high = round(n * 0.3), round(n * 0.7)
    ramp = [min(1.0, max(0.0, (state - low) / (high - low))) for state in range(high + 1)]
    worse = step(lambda state: (0.5, 0.5), lambda s, x: min(s + (x == 1), high))
    fails = tuple(0.03 + 0.94 * share for share in ramp)
    program = planted(n, random, fails, {}, others=worse)

    def holds(run: Recorded) -> bool:
        return run.risk(range(n)) > 0.9 and max(run.responsibility()) < _LEAST

    return Story(program, nobody("diffuse", "undecided"), holds=holds)


def mixed(n: int, random: Random) -> Story:
    """Plant a fault that is enough alone, and two that are enough together."""
    root, gate, payload = _places(n, 3, random)
    steps = {root: fault(A, _ROOT), gate: fault(B, 0.3), payload: fault(C, 0.3)}
    program = planted(n, random, graded(8, _root_or_both), steps)
    truth = several("over-determined", (root, gate, payload), root)
    return Story(program, truth, {root: 1, gate: 1, payload: 1})


def cold(n: int, random: Random) -> Story:
    """Make an agent that always gives the same answers, so drawing again changes nothing."""
    (root,) = _places(n, 1, random)
    program = planted(n, random, graded(2, bool), {root: fault(A, 1.0)}, others=PLAIN)
    return Story(program, nobody("inert"), fixed=_only(root, n))


def escalated(n: int, random: Random) -> Story:
    """Record the agent of `cold`, but draw live responses from one that varies."""
    (root,) = _places(n, 1, random)
    program = planted(n, random, graded(2, bool), {root: fault(A, _ROOT)})
    return Story(program, one(root), fixed=_only(root, n))


def fixture_echo(n: int, random: Random) -> Story:
    """Use the scripted agent whose ROOT failed and whose ECHO repeated it."""
    return Story(_fixture(), one(0, 1), fixed=(1, 1, 0, 0, 0, 0, 0))


def fixture_joint(n: int, random: Random) -> Story:
    """Use the scripted agent whose GATE let its PAYLOAD through."""
    return Story(_fixture(), several("joint", (3, 4), 4), fixed=(0, 0, 0, 1, 1, 0, 0))


def fixture_all(n: int, random: Random) -> Story:
    """Use the scripted agent with the faults of `fixture_echo` and `fixture_joint`."""
    named = {0, 3, 4}, {0, 3}, {0, 4}
    answers = (Answer("over-determined", frozenset(s), optional=frozenset({1})) for s in named)
    return Story(_fixture(), Truth(tuple(answers), frozenset({0})), fixed=(1, 1, 0, 1, 1, 0, 0))


def _places(n: int, count: int, random: Random) -> list[int]:
    return sorted(random.sample(range(n), count))


def _root_or_both(state: int) -> bool:
    return bool(state & A) or state & (B | C) == B | C


def _only(root: int, n: int) -> tuple[int, ...]:
    return tuple(int(place == root) for place in range(n))


def _fixture() -> Program:
    """Return the agent of seven scripted steps, which makes no error when it is live."""
    steps = {0: fault(A, 0.0), 1: echoing(A, heals=0.0, slips=0.0)}
    steps |= {3: fault(B, 0.0), 4: fault(C, 0.0)}
    fails = tuple(float(_root_or_both(state)) for state in range(8))
    return planted(7, chance("fixture"), fails, steps, others=PLAIN)

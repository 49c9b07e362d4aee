"""Search for the decisive step: a bisection with probabilities instead of certain answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from operator import mul

from tracefork_core.blaming.engine.curve import Belief, Posterior
from tracefork_core.blaming.engine.evidence import (
    RECORDED,
    Asking,
    Chain,
    Inquiry,
    World,
    first_unit,
    members,
    refined,
)
from tracefork_core.blaming.engine.probe import Probe

_PEELING = 0.7
"""Expected number of changes of a curve whose largest jump is already known and held."""
_ENOUGH = 24
_FEW = 4
_LEANING = 0.8
_GRADING = 1.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a search.

    Attributes:
        chain: the positions at its end.
        belief: the posterior of the curve at those positions.
        step: the decisive step of the chain, or the likeliest one; None for none.
        sure: whether the search reached its certainty, or ended because `patience` ran out.
    """

    chain: Chain
    belief: Belief
    step: int | None
    sure: bool

    @property
    def unit(self) -> int | None:
        """The first unit of the decisive step."""
        return None if self.step is None else first_unit(self.chain, self.step)


def localise(inquiry: Inquiry, chain: Chain, world: World = RECORDED) -> Asking[Finding]:
    """Search a curve for its decisive step, and for the unit within it, coarse to fine."""
    while True:
        finding = yield from _search(inquiry, chain, world)
        if finding.step is None or len(members(chain, finding.step)) == 1:
            return finding
        chain = refined(chain, finding.step)


def believed(inquiry: Inquiry, chain: Chain, world: World = RECORDED) -> Belief:
    """Return the posterior of a curve from the trials so far."""
    probes = [world.probe(kept) for kept in chain]
    failures, trials = [], []
    for index, probe in enumerate(probes):
        tally = inquiry.evidence.tally(probe)
        counts = not index or probe != probes[index - 1]  # An arm counts once.
        failures.append(tally.failures if counts else 0)
        trials.append(tally.trials if counts else 0)
    belief = Belief.of(
        Posterior(failures, trials, _hazards(inquiry, chain, probes, world)),
        samples=inquiry.settings.samples,
        threshold=inquiry.settings.threshold,
        random=inquiry.random,
    )
    if world == RECORDED:
        inquiry.chain, inquiry.belief = chain, belief
        inquiry.tell()
    return belief


def _search(inquiry: Inquiry, chain: Chain, world: World) -> Asking[Finding]:
    settings, spent = inquiry.settings, 0.0
    probes = [world.probe(kept) for kept in chain]
    places = [at for at in range(len(chain) - 1) if probes[at] != probes[at + 1]]
    while True:
        belief = believed(inquiry, chain, world)
        forks = sum(inquiry.evidence.tally(probes[at]).trials for at in places)
        if found := _answer(belief, forks, settings.credible):
            least = settings.least if world == RECORDED else 0
            if found[0] is not None or inquiry.evidence.tally(probes[0]).tried >= least:
                return Finding(chain, belief, found[0], sure=True)
            chosen = [0] * min(settings.batch, least - inquiry.evidence.tally(probes[0]).tried)
        else:
            costs = {at: inquiry.price(probes[at]) for at in places if _seeing(inquiry, probes[at])}
            costs[len(chain) - 1] = _GRADING
            if spent >= settings.patience * inquiry.size or len(costs) == 1:
                return Finding(chain, belief, _leaning(belief), sure=False)
            chosen = next_positions(belief, costs, inquiry.pace())
        yield from inquiry.ask([probes[at] for at in chosen])
        spent += sum(inquiry.price(probes[at]) for at in chosen)


def _answer(belief: Belief, forks: int, credible: float) -> tuple[int | None] | None:
    """Return (step,) once the decisive step is known, (None,) if there is none; None before that.

    A gain exactly at the threshold would be searched forever. So after enough forks the likeliest
    step is returned if it is clear which one that is; whether it can be blamed is decided later.
    """
    step, chance = belief.chances[0]
    if forks >= _FEW and chance >= credible:
        return (step,)
    likeliest, share = belief.likeliest()
    if forks >= _ENOUGH and belief.chance(None) < 0.9 and share >= credible:
        return (likeliest,)
    return None


def _leaning(belief: Belief) -> int | None:
    """Return the step to continue with when patience has run out; None if none is likely enough."""
    step, chance = belief.chances[0]
    return step if chance >= _LEANING else None


def _seeing(inquiry: Inquiry, probe: Probe) -> bool:
    """Return whether an arm is worth forking: false if most of its runs have no outcome."""
    tally = inquiry.evidence.tally(probe)
    return tally.undefined < 3 or tally.undefined <= tally.trials


def _hazards(inquiry: Inquiry, chain: Chain, probes: Sequence[Probe], world: World) -> list[float]:
    """Return the prior probability of a change at each step.

    A_i <= P(unit i changes its answer when drawn again), so the probability is scaled by how often
    it changed. That was observed in the recorded context only, so it is not used where a unit is
    given another response.
    """
    changes = inquiry.settings.changes if not world.base and not world.given else _PEELING
    usual = min(0.5, changes / max(4, len(chain) - 1))
    hazards = []
    for step in range(len(chain) - 1):
        units = members(chain, step)
        is_unseen = bool(world.given) or len(units) > 1
        changed, drawn = (0, 0) if is_unseen else inquiry.evidence.changed(units[0])
        same_arm = probes[step] == probes[step + 1]
        blameless = same_arm or inquiry.settings.auxiliary.issuperset(units)
        hazards.append(0.0 if blameless else usual * (changed + 1) / (drawn + 1))
    return hazards


def next_positions(belief: Belief, costs: Mapping[int, float], size: int) -> list[int]:
    """Return `size` positions to fork at, each the best one given those chosen before it.

    The score is I(Y; D | outcomes of the batch so far) / cost: mutual information, in nats, between
    the outcome of a fork and the decisive step (Lindley 1956; MacKay 1992, "Information-based
    objective functions for active data selection"), estimated from the sampled curves. Conditioning
    on the batch keeps it from testing the same thing twice.

    Args:
        belief: the posterior so far.
        costs: expected cost of a fork, > 0, at each position that may be chosen.
        size: number of positions to choose.
    """
    groups = _Groups(belief, sorted(costs))
    chosen: list[int] = []
    while len(chosen) < size:
        # The small constant lets the cost decide if there is no information to gain.
        scores = {at: (groups.information(at) + 1e-6) / costs[at] for at in costs}
        best = max(sorted(scores), key=scores.__getitem__)
        chosen.append(best)
        groups.split(best)
    return chosen


class _Groups:
    """The sampled curves by decisive step, weighted by how well they fit each pattern."""

    def __init__(self, belief: Belief, positions: Sequence[int]) -> None:
        members: dict[int | None, list[int]] = {}
        for index, step in enumerate(belief.steps):
            members.setdefault(step, []).append(index)
        self._total = len(belief.steps)
        self._columns = [
            {at: [belief.curves[index][at] for index in group] for at in positions}
            for group in members.values()
        ]
        self._patterns = [[[1.0] * len(group) for group in members.values()]]
        self._masses = [[float(len(group)) for group in members.values()]]

    def information(self, position: int) -> float:
        """Return the information of an outcome at a position about the decisive step, in nats."""
        total = 0.0
        for weights, masses in zip(self._patterns, self._masses, strict=True):
            fails = [
                sum(map(mul, group, columns[position]))
                for group, columns in zip(weights, self._columns, strict=True)
            ]
            total += _spread(sum(fails), sum(masses))
            total -= sum(map(_spread, fails, masses))
        return max(0.0, total / self._total)

    def split(self, position: int) -> None:
        """Split each pattern by the outcome of a fork at a position, for the choices after it."""
        split = []
        for weights in self._patterns:
            failing = [
                list(map(mul, group, columns[position]))
                for group, columns in zip(weights, self._columns, strict=True)
            ]
            split.append(failing)
            split.append(
                [
                    [whole - part for whole, part in zip(group, parts, strict=True)]
                    for group, parts in zip(weights, failing, strict=True)
                ]
            )
        self._patterns = split
        self._masses = [[sum(group) for group in weights] for weights in split]


def _spread(part: float, whole: float) -> float:
    """Return whole * H(part / whole), in nats."""
    rest = whole - part
    if part <= 0 or rest <= 0:
        return 0.0
    return whole * log(whole) - part * log(part) - rest * log(rest)

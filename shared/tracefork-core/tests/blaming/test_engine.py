"""The engine reaches the right verdict on small agents with a known fault."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tracefork_core.blaming.engine.probe import Settings
from tracefork_core.blaming.engine.result import Result

from .worlds import (
    Agent,
    both,
    careless,
    drifting,
    echo,
    either,
    errs,
    judged,
    noisy,
    plain,
    preempted,
    ran,
    single,
)

SEEDS = range(3)


def said(result: Result) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """Return kind, units and mediators of the verdict."""
    return result.verdict.kind, result.verdict.units, result.verdict.mediators


@pytest.mark.parametrize("seed", SEEDS)
def test_a_root_is_told_from_its_echo(seed: int) -> None:
    """The step that failed is named, and the one that repeated it is a mediator."""
    result = judged(single(), seed)
    assert said(result) == ("single", (3,), (5,))
    assert result.decisive is not None
    assert result.decisive.unit == 3
    assert result.decisive.interval[0] > 0
    assert result.verdict.certain
    assert result.repair is not None
    assert (result.repair.unit, result.repair.alone) == (3, False)


@pytest.mark.parametrize("root", [0, 2, 6])
def test_a_scripted_root_takes_few_forks(root: int) -> None:
    """If only the root varies, a few dozen forks are enough."""
    steps = plain(7, **{f"u{root}": errs(0.0)})
    result = judged(Agent(steps, ran(7, root), lambda run: float(run[root] == 1)))
    assert said(result) == ("single", (root,), ())
    assert result.repair is not None
    assert result.repair.alone
    assert result.ledger.live_calls < 150


@pytest.mark.parametrize("named", [True, False])
def test_an_auxiliary_step_is_never_named(named: bool) -> None:
    """Even a step that failed is not suspected if it is declared auxiliary."""
    steps = plain(5, u2=errs(0.0))
    auxiliary = frozenset() if named else frozenset({2})
    agent = Agent(steps, ran(5, 2), lambda run: float(run[2] == 1))
    result = judged(agent, settings=Settings(auxiliary=auxiliary))
    assert result.verdict.units == ((2,) if named else ())
    assert (result.units[2].chance > 0.9) is named
    assert named or result.units[2].chance == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_two_steps_that_were_both_needed_are_joint(seed: int) -> None:
    """Both parts of a conjunction are named, each fully responsible."""
    result = judged(both(), seed)
    assert said(result) == ("joint", (2, 5), ())
    assert result.verdict.responsibility == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_two_steps_that_were_each_enough_are_over_determined(seed: int) -> None:
    """The second cause is found once the first is repaired; each is half responsible."""
    result = judged(either(), seed)
    assert said(result) == ("over-determined", (2, 5), ())
    assert result.verdict.sets == ((2,), (5,))
    assert result.verdict.responsibility == 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cause_with_a_backup_is_preempting(seed: int) -> None:
    """The step that failed the run is named, though its repair would not have saved it."""
    assert said(judged(preempted(), seed)) == ("preempted", (2,), ())


def test_graded_answers_stay_live_while_others_are_held() -> None:
    """If the last response is graded, holding it would hide every cause before it."""
    agent = preempted()
    agent.steps = [*agent.steps[:7], lambda before, random: int(1 in (before[2], before[5]))]
    agent.recorded = ran(8, 2, 7)
    agent.fails = lambda run: noisy(run[7] == 1)
    assert said(judged(agent, 1, Settings(answers=frozenset({7})))) == ("preempted", (2,), ())
    assert said(judged(agent, 1)) == ("fails anyway", (), ())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_task_that_always_fails_blames_no_step(seed: int) -> None:
    """The verdict is `fails anyway`, and the baseline says how often."""
    result = judged(careless(8, 0.95), seed)
    assert said(result) == ("fails anyway", (), ())
    assert result.decisive is None
    assert result.baseline.forks >= 6


def test_a_failure_by_chance_costs_no_live_call() -> None:
    """A recorded run that passes when graded again is not reproducible."""
    for seed in range(10):
        result = judged(careless(8, 0.03), seed)
        assert said(result) == ("not reproducible", (), ())
        assert result.ledger.live_calls == 0


@pytest.mark.parametrize("chance", [0.5, 0.7])
def test_an_outcome_that_is_a_coin_blames_no_step(chance: float) -> None:
    """No seed blames a step, however the coin falls."""
    named = [judged(careless(5, chance), seed).verdict.units for seed in range(10)]
    assert named == [()] * 10


@pytest.mark.parametrize("place", [0, 3, 4])
def test_a_step_that_tosses_a_coin_is_named_only_on_demand(place: int) -> None:
    """A step that is no better than a coin when re-decided is named only with ceiling=1."""
    steps = plain(5, **{f"u{place}": errs(0.5)})
    agent = Agent(steps, ran(5, place), lambda run: float(run[place] == 1))
    named = [judged(agent, seed).verdict.units for seed in range(3)]
    assert named == [()] * 3
    assert judged(agent, 0, Settings(ceiling=1.0)).verdict.units == (place,)


def test_a_run_that_gradually_got_worse_blames_no_step() -> None:
    """If every step raises the risk a little, none is decisive."""
    result = judged(drifting(), 1, Settings(patience=25))
    assert result.verdict.kind in {"diffuse", "undecided"}
    assert result.verdict.units == ()
    assert len(result.credible) > 1


def test_an_agent_that_never_varies_is_inert() -> None:
    """If every response is the recorded one again, forks give no information."""
    result = judged(Agent([errs(0.0)] * 6, ran(6), lambda run: 0.97))
    assert said(result) == ("inert", (), ())
    assert all(unit.repeated == unit.drawn > 0 for unit in result.units)


def test_the_same_seed_gives_the_same_result() -> None:
    """Two blames with one seed are byte-equal, and another seed gives another result."""
    one, two, other = (msgspec.json.encode(judged(either(), seed)) for seed in (5, 5, 6))
    assert one == two
    assert one != other


@pytest.mark.parametrize("make", [single, both, either, preempted])
def test_a_budget_that_runs_out_anywhere_leaves_an_undecided_result(
    make: Callable[[], Agent],
) -> None:
    """Cut at any fork, the result names no unit. The full budget gives the full verdict."""
    whole = judged(make(), 1)
    for budget in range(0, whole.ledger.forks, 31):
        result = judged(make(), 1, budget=budget)
        assert result.ledger.forks == budget
        assert said(result)[0] == "undecided"
        assert said(result)[1] == ()
        assert not result.verdict.certain
        assert "budget" in result.verdict.reason
    assert said(judged(make(), 1, budget=whole.ledger.forks)) == said(whole)


def test_an_undecided_result_keeps_a_proven_decisive_step() -> None:
    """If the budget runs out after the proof, the step and its effect are in the result."""
    whole = judged(single(), 1)
    result = judged(single(), 1, budget=whole.ledger.forks - 8)
    assert result.verdict.kind == "undecided"
    assert result.decisive is not None
    assert result.decisive.unit == 3
    assert result.decisive.interval[0] > 0


def test_three_joint_causes_are_found() -> None:
    """Peeling a conjunction of three finds every member."""
    steps = plain(8, u1=errs(0.3), u4=errs(0.3), u6=errs(0.3))
    agent = Agent(steps, ran(8, 1, 4, 6), lambda run: noisy(run[1] == run[4] == run[6] == 1))
    assert said(judged(agent, 2)) == ("joint", (1, 4, 6), ())


def test_a_joint_pair_beside_a_single_cause_is_found() -> None:
    """The set that would have failed the repaired run is peeled as well."""
    steps = plain(8, u0=errs(0.15), u1=echo(0), u3=errs(0.2), u5=errs(0.2))
    agent = Agent(
        steps, ran(8, 0, 1, 3, 5), lambda run: noisy(run[1] == 1 or run[3] == run[5] == 1)
    )
    result = judged(agent, 3)
    assert said(result) == ("over-determined", (0, 3, 5), (1,))
    assert result.verdict.sets == ((0,), (3, 5))


def test_named_units_share_the_blame_on_request() -> None:
    """The members of a conjunction have equal shares, and need each other."""
    result = judged(both(), 0, Settings(sharing=40))
    assert [share.unit for share in result.shares] == [2, 5]
    assert sum(share.share for share in result.shares) == pytest.approx(0.94, abs=0.2)
    assert result.interactions[0].value > 0.2
    assert judged(both(), 0).shares == ()


def test_invalid_costs_and_groups_are_refused() -> None:
    """The errors name the argument: no units at all, and groups that are not a partition."""
    with pytest.raises(ValueError, match="costs"):
        judged(Agent([], [], lambda run: 1.0))
    with pytest.raises(ValueError, match="groups"):
        judged(single(), groups=[[0, 1], [1, 2]])

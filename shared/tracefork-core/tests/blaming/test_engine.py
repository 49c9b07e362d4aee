"""Who is blamed: small agents whose fault is known."""

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
    """Return the verdict in short."""
    return result.verdict.kind, result.verdict.units, result.verdict.mediators


@pytest.mark.parametrize("seed", SEEDS)
def test_a_root_is_told_from_its_echo(seed: int) -> None:
    """The step that erred is named, the one that repeated it is a mediator."""
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
    """Where nothing but the root varies, everything is found with a few dozen forks."""
    steps = plain(7, **{f"u{root}": errs(0.0)})
    result = judged(Agent(steps, ran(7, root), lambda run: float(run[root] == 1)))
    assert said(result) == ("single", (root,), ())
    assert result.repair is not None
    assert result.repair.alone
    assert result.ledger.live_calls < 150


@pytest.mark.parametrize("named", [True, False])
def test_an_auxiliary_step_is_never_named(named: bool) -> None:
    """Not even one that errs: declared as what a run may do without, it is no suspect."""
    steps = plain(5, u2=errs(0.0))
    auxiliary = frozenset() if named else frozenset({2})
    agent = Agent(steps, ran(5, 2), lambda run: float(run[2] == 1))
    result = judged(agent, settings=Settings(auxiliary=auxiliary))
    assert result.verdict.units == ((2,) if named else ())
    assert (result.units[2].chance > 0.9) is named
    assert named or result.units[2].chance == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_two_that_were_needed_are_joint(seed: int) -> None:
    """Both parts of a conjunction are named, each fully responsible."""
    result = judged(both(), seed)
    assert said(result) == ("joint", (2, 5), ())
    assert result.verdict.responsibility == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_two_that_were_each_enough_are_over_determined(seed: int) -> None:
    """The second cause is found once the first is repaired; each is half responsible."""
    result = judged(either(), seed)
    assert said(result) == ("over-determined", (2, 5), ())
    assert result.verdict.sets == ((2,), (5,))
    assert result.verdict.responsibility == 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cause_with_a_backup_is_preempting(seed: int) -> None:
    """The step that failed the run is named, though its repair would not have saved it."""
    assert said(judged(preempted(), seed)) == ("preempted", (2,), ())


def test_an_answer_is_left_to_follow_what_it_is_an_answer_to() -> None:
    """Where the last response is what is graded, holding it hides every cause before it."""
    agent = preempted()
    agent.steps = [*agent.steps[:7], lambda before, random: int(1 in (before[2], before[5]))]
    agent.recorded = ran(8, 2, 7)
    agent.fails = lambda run: noisy(run[7] == 1)
    assert said(judged(agent, 1, Settings(answers=frozenset({7})))) == ("preempted", (2,), ())
    assert said(judged(agent, 1)) == ("fails anyway", (), ())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_task_that_always_fails_is_nobodys_fault(seed: int) -> None:
    """A run that fails as often from the start names nobody, and says how often."""
    result = judged(careless(8, 0.95), seed)
    assert said(result) == ("fails anyway", (), ())
    assert result.decisive is None
    assert result.baseline.forks >= 6


def test_a_failure_that_was_chance_costs_no_call() -> None:
    """A run that is good when it is graded again is not reproducible, at no live call."""
    for seed in range(10):
        result = judged(careless(8, 0.03), seed)
        assert said(result) == ("not reproducible", (), ())
        assert result.ledger.live_calls == 0


@pytest.mark.parametrize("chance", [0.5, 0.7])
def test_an_outcome_that_is_a_coin_names_nobody(chance: float) -> None:
    """However the coin falls, no step is blamed for it."""
    named = [judged(careless(5, chance), seed).verdict.units for seed in range(10)]
    assert named == [()] * 10


@pytest.mark.parametrize("place", [0, 3, 4])
def test_a_coin_that_a_step_tosses_names_nobody(place: int) -> None:
    """A step that is no better than a coin when it is re-decided is named on demand only."""
    steps = plain(5, **{f"u{place}": errs(0.5)})
    agent = Agent(steps, ran(5, place), lambda run: float(run[place] == 1))
    named = [judged(agent, seed).verdict.units for seed in range(3)]
    assert named == [()] * 3
    assert judged(agent, 0, Settings(ceiling=1.0)).verdict.units == (place,)


def test_a_run_that_got_worse_bit_by_bit_names_nobody() -> None:
    """Where every step raises the risk a little, none is decisive."""
    result = judged(drifting(), 1, Settings(patience=25))
    assert result.verdict.kind in {"diffuse", "undecided"}
    assert result.verdict.units == ()
    assert len(result.credible) > 1


def test_an_agent_that_never_varies_is_said_to_be_inert() -> None:
    """Where every response is the recorded one again, drawing again can tell nothing."""
    result = judged(Agent([errs(0.0)] * 6, ran(6), lambda run: 0.97))
    assert said(result) == ("inert", (), ())
    assert all(unit.repeated == unit.drawn > 0 for unit in result.units)


def test_the_same_seed_gives_the_same_result() -> None:
    """Two blames with one seed are equal to the byte, and another seed asks otherwise."""
    one, two, other = (msgspec.json.encode(judged(either(), seed)) for seed in (5, 5, 6))
    assert one == two
    assert one != other


@pytest.mark.parametrize("make", [single, both, either, preempted])
def test_a_budget_may_run_out_anywhere(make: Callable[[], Agent]) -> None:
    """Cut at any fork there is a result; it names nobody, or says what all of it says."""
    whole = judged(make(), 1)
    for budget in range(0, whole.ledger.forks, 31):
        result = judged(make(), 1, budget=budget)
        assert result.ledger.forks == budget
        assert said(result)[0] == "undecided"
        assert said(result)[1] == ()
        assert not result.verdict.certain
        assert "budget" in result.verdict.reason
    assert said(judged(make(), 1, budget=whole.ledger.forks)) == said(whole)


def test_what_is_known_when_the_budget_runs_out_is_told() -> None:
    """After the decisive step is proven, an undecided result still carries it, with its effect."""
    whole = judged(single(), 1)
    result = judged(single(), 1, budget=whole.ledger.forks - 8)
    assert result.verdict.kind == "undecided"
    assert result.decisive is not None
    assert result.decisive.unit == 3
    assert result.decisive.interval[0] > 0


def test_a_third_part_is_found() -> None:
    """A conjunction of three is peeled to its last member."""
    steps = plain(8, u1=errs(0.3), u4=errs(0.3), u6=errs(0.3))
    agent = Agent(steps, ran(8, 1, 4, 6), lambda run: noisy(run[1] == run[4] == run[6] == 1))
    assert said(judged(agent, 2)) == ("joint", (1, 4, 6), ())


def test_a_pair_beside_a_single_cause_is_found() -> None:
    """What would have failed the repaired run is peeled as well."""
    steps = plain(8, u0=errs(0.15), u1=echo(0), u3=errs(0.2), u5=errs(0.2))
    agent = Agent(
        steps, ran(8, 0, 1, 3, 5), lambda run: noisy(run[1] == 1 or run[3] == run[5] == 1)
    )
    result = judged(agent, 3)
    assert said(result) == ("over-determined", (0, 3, 5), (1,))
    assert result.verdict.sets == ((0,), (3, 5))


def test_named_units_share_the_blame_where_that_is_asked() -> None:
    """The parts of a conjunction share alike, and need each other."""
    result = judged(both(), 0, Settings(sharing=40))
    assert [share.unit for share in result.shares] == [2, 5]
    assert sum(share.share for share in result.shares) == pytest.approx(0.94, abs=0.2)
    assert result.interactions[0].value > 0.2
    assert judged(both(), 0).shares == ()


def test_units_and_costs_are_checked() -> None:
    """No units, a negative cost, and groups that are no partition are refused in words."""
    with pytest.raises(ValueError, match="costs"):
        judged(Agent([], [], lambda run: 1.0))
    with pytest.raises(ValueError, match="groups"):
        judged(single(), groups=[[0, 1], [1, 2]])

"""A result has the evidence for its verdict: curve, controls, units, groups and ledger."""

from __future__ import annotations

import msgspec
import pytest

from tracefork_core.blaming.engine.probe import Settings
from tracefork_core.blaming.engine.result import Result

from .worlds import Agent, both, errs, judged, plain, ran, single


def test_a_result_is_plain_json() -> None:
    """Encoding and decoding gives an equal result."""
    result = judged(single())
    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result


def test_the_curve_has_every_position() -> None:
    """Each point has its unit, its counts, and an interval that covers the truth."""
    result = judged(single(), 2)
    assert [point.position for point in result.curve] == list(range(9))
    assert [point.unit for point in result.curve] == [*range(8), None]
    truth = [0.171] * 4 + [0.97] * 5
    for point, risk in zip(result.curve, truth, strict=True):
        assert point.interval[0] <= risk <= point.interval[1]
        assert point.rate is None or point.rate == point.failures / point.forks
    assert result.credible == (3,)


def test_all_intervals_hold_at_once_wherever_the_engine_stopped() -> None:
    """At most one blame in eight may have a wrong interval."""
    live, held = 0.03 + 0.94 * 0.15, 0.97
    wrong = 0
    for seed in range(8):
        result = judged(single(), seed)
        assert result.decisive is not None
        low, high = result.decisive.interval
        sound = low <= held - live <= high
        for point in result.curve:
            risk = live if point.position <= 3 else held
            sound &= point.interval[0] <= risk <= point.interval[1]
        wrong += not sound
    assert wrong <= 1


def test_every_fork_is_in_the_ledger() -> None:
    """The ledger counts forks by purpose, and calls, tokens and time."""
    result = judged(both(), 1)
    assert sum(result.ledger.purposes.values()) == result.ledger.forks
    assert result.ledger.purposes["replay"] == 5
    assert result.ledger.live_calls > 0
    assert result.ledger.usd == 0


def test_units_tell_how_often_they_were_drawn_and_flipped() -> None:
    """The rescue rate is that of the unit's position; flips count only draws that differed."""
    result = judged(single(), 0)
    root, scripted = result.units[3], result.units[4]
    assert root.chance > 0.9
    assert root.gain > 0.5
    assert root.rescue == pytest.approx(1 - (result.curve[3].rate or 0))
    assert 0 < root.flips <= root.redrawn
    assert root.flip_interval[0] <= root.flips / root.redrawn <= root.flip_interval[1]
    assert scripted.repeated == scripted.drawn > 0


def test_a_full_blame_runs_all_controls_and_they_pass() -> None:
    """The controls are replay, placebo, a step that is not suspected, and drift."""
    result = judged(single(), 3)
    assert [control.name for control in result.controls] == [
        "replay",
        "placebo",
        "null step",
        "drift",
    ]
    assert all(control.passed for control in result.controls)


def test_the_drift_control_notices_a_changing_provider() -> None:
    """The provider starts to fail in the phase `certify`."""
    agent, phases = single(6, 2), set[str]()
    usual = agent.fails
    agent.fails = lambda run: 0.97 if "certify" in phases else usual(run)
    result = judged(agent, 2, watch=lambda standing: phases.add(standing.phase))
    assert [control.passed for control in result.controls if control.name == "drift"] == [False]


@pytest.mark.parametrize("seed", range(3))
def test_a_few_forks_without_an_outcome_do_not_change_the_verdict(seed: int) -> None:
    """They are counted, widen the intervals, and no other unit is named."""
    agent = single()
    agent.breaks = 0.08
    result = judged(agent, seed)
    assert result.undefined.forks > 0
    assert result.undefined.reasons == {"it broke off": result.undefined.forks}
    assert result.verdict.units in {(3,), ()}
    broken = [point for point in result.curve if point.undefined and point.forks]
    assert broken
    for point in broken:
        tried = point.forks + point.undefined
        assert point.interval[0] < point.failures / tried
        assert point.interval[1] >= (point.failures + point.undefined) / tried


def test_blame_is_undecided_if_most_forks_have_no_outcome() -> None:
    """With half the runs lost no unit is named, and the blame still ends."""
    agent = single()
    agent.breaks = 0.5
    result = judged(agent, 1)
    assert result.verdict.kind == "undecided"
    assert result.verdict.units == ()
    agent.breaks = 1.0
    assert judged(agent, 1).ledger.live_calls == 0


def test_groups_are_searched_first() -> None:
    """The curve is fine only inside the group to blame; gains of a group add up."""
    groups = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    steps = plain(12, u6=errs(0.1))
    agent = Agent(steps, ran(12, 6), lambda run: float(run[6] == 1))
    result = judged(agent, 1, groups=groups)
    assert result.verdict.units == (6,)
    assert [point.position for point in result.curve] == [0, 4, 5, 6, 7, 8, 12]
    assert [group.chance > 0.9 for group in result.groups] == [False, True, False]
    assert sum(group.gain for group in result.groups) == pytest.approx(
        sum(unit.gain for unit in result.units)
    )


def test_groups_may_interleave() -> None:
    """Two agents that alternate are searched agent by agent, then step by step."""
    steps = plain(8, u5=errs(0.1))
    agent = Agent(steps, ran(8, 5), lambda run: float(run[5] == 1))
    result = judged(agent, 1, groups=[[0, 2, 4, 6], [1, 3, 5, 7]])
    assert result.verdict.units == (5,)
    assert [group.chance > 0.9 for group in result.groups] == [False, True]


def test_the_result_has_the_effect_without_known_oracle_errors() -> None:
    """The raw effect stays beside it."""
    result = judged(single(), 0, Settings(false_fail=0.1, miss=0.1))
    assert result.decisive is not None
    assert result.decisive.corrected == pytest.approx(min(1, result.decisive.effect / 0.8))

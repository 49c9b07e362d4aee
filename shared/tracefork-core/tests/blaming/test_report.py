"""What a result tells besides the verdict."""

from __future__ import annotations

import msgspec
import pytest

from tracefork_core.blaming.engine.probe import Settings
from tracefork_core.blaming.engine.result import Result

from .worlds import Agent, both, errs, judged, plain, ran, single


def test_a_result_is_plain_json() -> None:
    """It is written and read again as it was."""
    result = judged(single())
    assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result


def test_the_curve_has_every_position() -> None:
    """Each position tells its unit, what was seen, and an interval that holds the truth."""
    result = judged(single(), 2)
    assert [point.position for point in result.curve] == list(range(9))
    assert [point.unit for point in result.curve] == [*range(8), None]
    truth = [0.171] * 4 + [0.97] * 5
    for point, risk in zip(result.curve, truth, strict=True):
        assert point.interval[0] <= risk <= point.interval[1]
        assert point.rate is None or point.rate == point.failures / point.forks
    assert result.credible == (3,)


def test_what_is_printed_holds_wherever_the_engine_stopped() -> None:
    """All intervals of a blame hold at once, in nearly every blame."""
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
    """The rescue rate is that of its position, flips are counted where the draw differed."""
    result = judged(single(), 0)
    root, scripted = result.units[3], result.units[4]
    assert root.chance > 0.9
    assert root.gain > 0.5
    assert root.rescue == pytest.approx(1 - (result.curve[3].rate or 0))
    assert 0 < root.flips <= root.redrawn
    assert root.flip_interval[0] <= root.flips / root.redrawn <= root.flip_interval[1]
    assert scripted.repeated == scripted.drawn > 0


def test_controls_are_made_and_pass() -> None:
    """Replay, placebo, a step beside, and drift are reported on every full blame."""
    result = judged(single(), 3)
    assert [control.name for control in result.controls] == [
        "replay",
        "placebo",
        "null step",
        "drift",
    ]
    assert all(control.passed for control in result.controls)


def test_drift_is_noticed() -> None:
    """Where the provider changes while it is asked, the drift control says so."""
    agent, phases = single(6, 2), set[str]()
    usual = agent.fails
    agent.fails = lambda run: 0.97 if "certify" in phases else usual(run)
    result = judged(agent, 2, watch=lambda standing: phases.add(standing.phase))
    assert [control.passed for control in result.controls if control.name == "drift"] == [False]


@pytest.mark.parametrize("seed", range(3))
def test_some_forks_may_break_off(seed: int) -> None:
    """Runs without an outcome are counted, widen intervals, and do not change who is named."""
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


def test_where_most_forks_break_off_nothing_is_decided() -> None:
    """With half the runs lost nobody is named, and the blame still ends."""
    agent = single()
    agent.breaks = 0.5
    result = judged(agent, 1)
    assert result.verdict.kind == "undecided"
    assert result.verdict.units == ()
    agent.breaks = 1.0
    assert judged(agent, 1).ledger.live_calls == 0


def test_groups_are_searched_first() -> None:
    """The curve is coarse where nothing was, fine where it mattered; gains of a group add up."""
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
    """Two agents that take turns are searched agent by agent, then turn by turn."""
    steps = plain(8, u5=errs(0.1))
    agent = Agent(steps, ran(8, 5), lambda run: float(run[5] == 1))
    result = judged(agent, 1, groups=[[0, 2, 4, 6], [1, 3, 5, 7]])
    assert result.verdict.units == (5,)
    assert [group.chance > 0.9 for group in result.groups] == [False, True]


def test_the_oracle_is_corrected_for() -> None:
    """Where its errors are known, the effect without them is told beside the raw one."""
    result = judged(single(), 0, Settings(false_fail=0.1, miss=0.1))
    assert result.decisive is not None
    assert result.decisive.corrected == pytest.approx(min(1, result.decisive.effect / 0.8))

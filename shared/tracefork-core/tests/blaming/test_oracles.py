"""Oracles from text grade outcomes, and regrading measures the errors of an oracle."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tracefork_core import UsageError
from tracefork_core.blaming.blame import blame
from tracefork_core.blaming.engine.probe import Probe, Trial
from tracefork_core.blaming.oracles.noise import measured
from tracefork_core.blaming.oracles.oracles import Ended, read_oracle

from . import drawing
from .drawn import QUICK, SHORT

GRADED = [
    ("exit", Ended(0, "done"), Ended(3, "done")),
    ("exit", "returned", KeyError("raised")),
    ("exit", SystemExit(0), SystemExit(3)),
    ("exit", SystemExit(None), SystemExit("No order.")),
    ("regex:ord.r \\d+$", "for order 17", Ended(0, "for order 17.")),
    ("regex:a:b", "a:b", "a"),
    ("not-regex:(?i)sorry", Ended(1, "done"), "I am SORRY"),
    ("equals:a: b", " a: b\n", "a: b c"),
    ("equals:", "", "x"),
    ("json:/a/0/b=1", '{"a": [{"b": 1}]}', '{"a": [{"b": 2}]}'),
    ("json:/a=paid", {"a": "paid"}, {"a": "open"}),
    ("json:/a=true", Ended(0, '{"a": true}'), Ended(0, "no JSON")),
    ("json:/a~1b/~0=null", {"a/b": {"~": None}}, {"a/b": {}}),
    ("json:={}", "{}", "[]"),
    ("json:/a/1=2", {"a": [1, 2]}, {"a": [1]}),
    ("json:/a/0=x", {"a": ["x"]}, {"a": "x"}),
    ("operator:truth", [0], []),
]


@pytest.mark.parametrize(("words", "good", "bad"), GRADED, ids=[words for words, *_ in GRADED])
def test_oracles_from_text_tell_good_from_bad(words: str, good: object, bad: object) -> None:
    """They grade what a function returned, and the output and exit status of a program."""
    oracle = read_oracle(words)
    assert oracle(good)
    assert not oracle(bad)


@pytest.mark.parametrize("end", [Ended(125, ""), SystemExit(125)])
def test_exit_status_125_gives_no_grade(end: object) -> None:
    """This is as in `git bisect run`, for programs and for functions that raise SystemExit."""
    with pytest.raises(LookupError, match="cannot be graded"):
        read_oracle("exit")(end)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "not an oracle. Use exit"),
        ("exits", "not an oracle"),
        ("regex", "not an oracle"),
        ("regex:(", "not a valid pattern"),
        ("json:/a", "json:/pointer=VALUE"),
        ("json:a=1", "json:/pointer=VALUE"),
        ("operator:nothing", "no oracle operator:nothing"),
        ("nowhere.at_all:fn", "no oracle nowhere.at_all:fn"),
        ("math:pi", "not a function"),
        ("judge:nowhere.md", r"cannot read the rubric .*nowhere\.md"),
    ],
)
def test_invalid_oracle_texts_are_refused(words: str, says: str) -> None:
    """The error says what is wrong, or lists the valid forms."""
    with pytest.raises(UsageError, match=says):
        read_oracle(words)


class Unsure:
    """An oracle that fails 15 % of good outcomes and passes 10 % of bad ones."""

    def __init__(self) -> None:
        self.chance = random.Random(3)
        self.asked = 0

    def __call__(self, outcome: object) -> bool:
        self.asked += 1
        good = drawing.good(outcome)
        return good is (self.chance.random() >= (0.15 if good else 0.10))


def test_regrading_measures_and_corrects_oracle_errors(tape: Path) -> None:
    """The corrected effect is larger than the observed one by the share that the errors hide."""
    oracle = Unsure()
    report = blame(tape, drawing.agent, oracle, regrades=40, settings=QUICK, budget="60 calls")
    noise, decisive = report.noise, report.result.decisive
    assert noise is not None
    assert noise.false_fail is not None
    assert noise.miss is not None
    assert noise.false_fail == pytest.approx(0.15, abs=0.06)
    assert noise.miss == pytest.approx(0.10, abs=0.06)
    assert decisive is not None
    shrunk = 1 - noise.false_fail - noise.miss
    assert decisive.corrected == pytest.approx(min(1.0, decisive.effect / shrunk))
    assert noise.grades == sum(len(one.grades) for one in report.draws)
    assert oracle.asked <= noise.grades + len(report.draws)


def test_a_consistent_oracle_has_no_measured_errors(tape: Path) -> None:
    """Without regrades the report has no noise, and fewer than three regrades are refused."""
    report = blame(tape, drawing.agent, drawing.good, regrades=3, settings=SHORT)
    assert report.noise is not None
    assert (report.noise.minority, report.noise.false_fail, report.noise.miss) == (0, 0, 0)
    folder = tape.parent / "other"
    assert blame(tape, drawing.agent, drawing.good, settings=SHORT, folder=folder).noise is None
    for regrades in (2, -3):
        with pytest.raises(UsageError, match="at least 3"):
            blame(tape, drawing.agent, drawing.good, regrades=regrades, folder=folder)


def graded(number: int, grades: str) -> Trial:
    """Return a trial whose outcome was graded as failed at each F."""
    fails = tuple(grade == "F" for grade in grades)
    return Trial(number, Probe(frozenset()), failed=True, grades=fails)


@pytest.mark.parametrize(("false_fail", "miss"), [(0.0, 0.0), (0.3, 0.05), (0.1, 0.35)])
def test_error_rates_are_estimated_from_grades_alone(false_fail: float, miss: float) -> None:
    """The true outcomes are not needed; outcomes graded once give no estimate."""
    chance = random.Random(1)
    trials = []
    for number in range(400):
        bad = chance.random() < 0.4
        rate = 1 - miss if bad else false_fail
        grades = ("F" if chance.random() < rate else "." for _ in range(5))
        trials.append(graded(number, "".join(grades)))
    noise = measured(trials)
    assert noise is not None
    assert noise.false_fail == pytest.approx(false_fail, abs=0.03)
    assert noise.miss == pytest.approx(miss, abs=0.03)
    assert measured([graded(n, "F") for n in range(9)]) is None


def test_an_error_rate_without_regraded_outcomes_is_unknown() -> None:
    """Only bad outcomes were regraded, so the rate at which good ones fail is None."""
    noise = measured([graded(n, "FF.F") for n in range(5)])
    assert noise is not None
    assert (noise.false_fail, noise.miss) == (None, 0.25)

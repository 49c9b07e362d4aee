"""A test that passes most of the time gets a verdict on how often it passes."""

from __future__ import annotations

import random

import pytest
from adapters.suites import Suite

from tracefork_core.blaming.engine.pass_rate import FAIL, PASS, missing_runs, verdict_on

TESTS = """
import json, pathlib, pytest

FILE = pathlib.Path(__file__).with_name("outcomes.json")

@pytest.fixture
def fresh():
    return []

@pytest.mark.tape(repeat=20, pass_rate=.9)
def test_mostly(fresh, tape):
    ask("Where is order 17?")
    assert fresh == [] and len(tape.exchanges) == 1
    fresh.append(1)
    number = int(tape.path.stem)
    assert json.loads(FILE.read_text())[number - 1], "the agent was wrong"
"""


@pytest.mark.parametrize(
    ("outcomes", "word"),
    [
        ([True] * 20, None),
        ([False, True, False, False] * 5, "less than 90%"),
        ([True] * 9 + [False] + [True] * 10, "undecided"),
    ],
    ids=["pass", "fail", "undecided"],
)
def test_it_passes_fails_or_says_what_is_missing(
    suite: Suite, outcomes: list[bool], word: str | None
) -> None:
    """It stops as soon as the rate is known, and a replay of the series ends the same."""
    suite.write(TESTS)
    (suite.folder / "outcomes.json").write_text(str(outcomes).lower())
    counts = [(outcomes[:n].count(True), outcomes[:n].count(False)) for n in range(1, 21)]
    runs = next((sum(count) for count in counts if verdict_on(*count, 0.9, 0.8)), 20)
    assert (runs < 20) == (word != "undecided")
    for mode in ("once", "none"):
        result = suite.here(f"--tape-mode={mode}")
        assert result.outcomes == {"test_mostly": "failed" if word else "passed"}, result.text
        assert word is None or word in result.text
        assert suite.asked == runs
    assert suite.tapes == {f"test_agent/test_mostly/{n:02}.tape" for n in range(1, runs + 1)}
    assert result.section("tapes without a test") == []
    if word:
        assert f"of {runs} runs" in result.text
        assert "the agent was wrong" in result.text
    if word == "undecided":
        assert "more that pass would do" in result.text


def test_a_difference_in_a_series_is_no_sample(suite: Suite) -> None:
    """It says that the agent was changed, not that it is bad."""
    suite.write(TESTS)
    (suite.folder / "outcomes.json").write_text(str([True] * 20).lower())
    assert suite.here("--tape-mode=once").failed == set()
    suite.edit("order 17", "order 18")
    result = suite.here()
    assert result.outcomes == {"test_mostly": "failed"}
    assert "the request differs from recorded exchange 0" in result.text
    assert "undecided" not in result.text


@pytest.mark.parametrize(("rate", "wrong"), [(0.9, FAIL), (0.899, PASS)])
def test_looking_after_each_run_is_wrong_less_often_than_the_confidence_says(
    rate: float, wrong: str
) -> None:
    """An agent at the very edge is the hardest to judge."""
    draw, mistakes = random.Random(7), 0
    for _ in range(100):
        passed = 0
        for runs in range(1, 61):
            passed += draw.random() < rate
            verdict = verdict_on(passed, runs - passed, 0.9, 0.8)
            if verdict is not None:
                mistakes += verdict == wrong
                break
    assert mistakes / 100 <= 0.2


def test_what_is_missing_would_be_enough() -> None:
    """One run less would not be."""
    more = missing_runs(19, 1, 0.9, 0.8)
    assert more is not None
    assert verdict_on(19 + more, 1, 0.9, 0.8) == PASS
    assert verdict_on(18 + more, 1, 0.9, 0.8) is None

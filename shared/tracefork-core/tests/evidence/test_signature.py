"""A failure has the same signature in every run, and another failure another one."""

from __future__ import annotations

import pytest

from tracefork_core.evidence.signature import normalised, signature

PYTEST = """\
============================= test session starts ==============================
collected 3 items

tests/test_app.py F.F                                                   [100%]

=========================== short test summary info ============================
FAILED tests/test_app.py::test_sum - AssertionError: assert 3 == {value}
FAILED tests/test_app.py::test_name - KeyError: 'x'
========================= 2 failed, 1 passed in {seconds}s =========================
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "/tmp/pytest-{n}/app.py", line {n}, in <module>
    run()
ValueError: no order at 0x7f{n}aa0011bb22 after {n} ms
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            PYTEST.format(value=4, seconds="0.12"),
            PYTEST.format(value=5, seconds="1.70").replace("F.F", "FF."),
        ),
        (TRACEBACK.format(n=11), TRACEBACK.format(n=27)),
        ("error in /tmp/a1b2/x at 2026-11-28T08:00:01Z", "error in /tmp/zz/y at 2025-01-02 03:04"),
        ("\x1b[31mnot found\x1b[0m", "not found"),
    ],
)
def test_the_same_failure_has_one_signature(one: str, other: str) -> None:
    """Values, times, addresses, folders and lines differ between two runs of a failure."""
    assert signature(one) == signature(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            PYTEST.format(value=4, seconds="1"),
            PYTEST.format(value=4, seconds="1").replace("test_name", "test_age"),
        ),
        ("ValueError: no order", "KeyError: no order"),
        ("order 17 not found", "order 18 not found"),
    ],
)
def test_another_failure_has_another_signature(one: str, other: str) -> None:
    """The control: another test, another exception, another order."""
    assert signature(one) != signature(other)


def test_the_tests_of_pytest_are_sorted() -> None:
    """The order in which they ran does not matter."""
    assert normalised(PYTEST.format(value=4, seconds="1")).splitlines() == [
        "tests/test_app.py::test_name KeyError",
        "tests/test_app.py::test_sum AssertionError",
    ]

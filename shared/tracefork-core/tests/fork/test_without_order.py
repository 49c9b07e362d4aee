"""Threads that are older than the session have no order: a fork matches what they ask."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import DivergenceError, Replace, Tape, fork, record

from .agent import Moody, ask

Elder = Callable[[Callable[[], Any]], Any]


def test_an_exchange_without_order_is_changed_by_its_number(
    tape: Path, url: str, moody: Moody, elder: Elder
) -> None:
    """In whatever order the threads ask. A changed request takes no recorded place and is live."""

    def run(texts: str) -> list[str]:
        return [elder(partial(ask, url, text)) for text in texts]

    with record(tape, scope="process"):
        assert run("abcd") == ["answer 1", "answer 2", "answer 3", "answer 4"]
    with fork(tape, at=1, change={2: Replace("changed")}, hold=[3], scope="process") as branch:
        assert run("adcb") == ["answer 1", "answer 4", "changed", "answer 5"]
    assert (branch.replayed, branch.given, branch.live) == (2, 1, 1)
    with Tape.open(branch.path) as taken:
        assert [exchange.aside.place for exchange in taken.exchanges] == [None, 3, 2, 1]
    with fork(tape, at=1, change={2: Replace("changed")}, scope="process") as other:
        assert run("abxc") == ["answer 1", "answer 6", "answer 7", "changed"]
    assert (other.given, other.live) == (1, 2)
    with (
        pytest.raises(DivergenceError, match="#2"),
        fork(tape, at=2, replace="changed", scope="process"),
    ):
        run("abx")

"""A kill while a tape is closed leaves it incomplete or complete, never in between."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Tape
from tracefork_core.tape.integrity import check_integrity
from tracefork_testkit import ProviderServer

SEED = 20261122
KILLS = max(8, int(os.environ.get("TRACEFORK_KILLS", "24")) // 4)


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as opened:
        yield opened


def state_of(tape: Path, asked: int) -> bool:
    """Return whether a tape is complete; fail unless it is intact as far as it claims."""
    result = check_integrity(tape)
    assert result.damage == []
    with Tape.open(tape) as opened:
        assert opened.complete is (opened.receipt is not None)
        assert [exchange.end for exchange in opened.exchanges] == ["eof"] * asked
        assert opened.receipt is None or opened.receipt.digest == opened.digest
        return opened.complete


@pytest.mark.parametrize(("agent", "asked"), [("three", 3), ("many", 40)])
def test_a_kill_before_any_file_call_of_closing_leaves_a_valid_tape(
    tmp_path: Path, server: ProviderServer, nursery: Any, agent: str, asked: int
) -> None:
    """It is incomplete up to one call, and complete after it."""
    states: list[bool] = []
    for at in range(200):
        tape = tmp_path / f"{at}.tape"
        points = nursery.run("record", agent, server.url, tape, die_at=at).points
        states.append(state_of(tape, asked))
        if points is not None:
            break
    assert points == at > 10
    assert states == sorted(states)
    assert states[0] is False
    assert states[-1] is True


@pytest.mark.parametrize("agent", ["three", "many"])
@pytest.mark.parametrize("kill", range(KILLS))
def test_a_kill_at_any_moment_of_closing_leaves_a_valid_tape(
    tape: Path, server: ProviderServer, nursery: Any, agent: str, kill: int
) -> None:
    """Also in the middle of a call. A complete tape replays."""
    wait = random.Random(f"{SEED} {agent} {kill}").uniform(0, 0.02)
    nursery.run("record", agent, server.url, tape, kill_in_close=True, wait=wait)
    if state_of(tape, {"three": 3, "many": 40}[agent]):
        assert nursery.run("replay", agent, server.url, tape).error is None

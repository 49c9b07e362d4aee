"""A divergence gets through a framework that retries errors or tells them to the model."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core import DivergenceError, UsageError
from tracefork_core.adapters import also_a, check_session, tool_exchange


class VetoError(Exception):
    """What a framework passes on: it reads `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def agent(order: int, *, checks: bool) -> str:
    """Call a tool as a framework does that turns each error into a text for the model."""
    try:
        return str(tool_exchange("find", {"order": order}, lambda order: f"order {order}"))
    except Exception as error:
        if checks:
            check_session(VetoError, reason="stopped")
        return f"the tool failed: {error}"


def test_a_divergence_is_raised_in_a_class_of_the_framework(tape: Path) -> None:
    """It is the session's own error as well, with its divergence."""
    with tracefork.record(tape):
        agent(17, checks=True)
    replaying = tracefork.replay(tape)
    with pytest.raises(DivergenceError), replaying, pytest.raises(VetoError) as raised:
        agent(18, checks=True)
    assert isinstance(raised.value, DivergenceError)
    assert raised.value.reason == "stopped"
    assert raised.value.divergence is not None


def test_a_swallowed_divergence_ends_the_session_all_the_same(tape: Path) -> None:
    """Without the check the agent continues, and only the end of the session raises."""
    with tracefork.record(tape):
        agent(17, checks=False)
    with pytest.raises(DivergenceError), tracefork.replay(tape):
        assert "the tool failed" in agent(18, checks=False)


def test_nothing_is_raised_where_nothing_diverged(tape: Path) -> None:
    """Neither in a session without an error nor outside of one."""
    check_session(VetoError)
    with tracefork.record(tape):
        check_session(VetoError)


def test_an_error_of_an_adapter_is_also_one_of_the_framework() -> None:
    """An adapter refuses something in the framework's own words."""
    error = also_a(UsageError("tracefork: no"), VetoError, reason="no")
    assert isinstance(error, UsageError)
    assert isinstance(error, VetoError)
    assert (str(error), error.reason) == ("tracefork: no", "no")

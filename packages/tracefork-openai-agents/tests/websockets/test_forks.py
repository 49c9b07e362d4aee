"""Fork and blame runs whose models are asked over a websocket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_core import Edit, Fail, Replace

CALLS = "@call lookup {}\n@then\n@say done"


@pytest.fixture
def recorded(ask: Any, tape: Path) -> Path:
    """A run that asks a model, calls a tool and asks again."""
    with tracefork.record(tape):
        ask(CALLS)
    return tape


def test_a_fork_answers_with_a_text(ask: Any, sockets: Any, recorded: Path) -> None:
    """The text becomes the events that a server would send, and no server is asked."""
    sockets.stop()
    with tracefork.fork(recorded, at=0, replace="hello"):
        assert ask(CALLS) == "hello"


def test_a_fork_is_live_behind_its_point(
    ask: Any, sockets: Any, recorded: Path, calls: list[int]
) -> None:
    """The first live request opens the connection."""
    with tracefork.fork(recorded, at=2):
        assert ask(CALLS).startswith("done")
    assert (len(sockets.handshakes), len(sockets.frames), len(calls)) == (2, 3, 1)


def test_a_fork_sends_an_edited_request(ask: Any, sockets: Any, recorded: Path) -> None:
    """The frame that goes out is the edited one."""
    with tracefork.fork(recorded, at=2, replace=Edit(values={"/instructions": "Be brief."})):
        ask(CALLS)
    assert sockets.frames[-1]["instructions"] == "Be brief."


def test_a_fork_lets_the_provider_fail(ask: Any, recorded: Path) -> None:
    """The agent gets the event of an error, which is how servers say it on a websocket."""
    with (
        pytest.raises(Exception, match="no more quota"),
        tracefork.fork(recorded, at=0, replace=Fail(status=429, message="no more quota")),
    ):
        ask(CALLS)


def test_a_fork_calls_a_tool_instead(ask: Any, recorded: Path, calls: list[int]) -> None:
    """The text and calls of an answer are independent of the transport."""
    change = Replace(tool_calls=[("lookup", {})])
    with tracefork.fork(recorded, at=2, replace=change, writes="allow"):
        ask(CALLS)
    assert len(calls) == 2

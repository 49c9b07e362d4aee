"""Tools in a fork: held, replaced, failed, or refused because they write."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core import Drop, Edit, Fail, Keep, Replace, WriteError

done: list[str] = []


@tracefork.tool(effect="read")
def look_up(order: int) -> dict[str, object]:
    done.append(f"look up {order}")
    return {"order": order, "state": f"shipped {len(done)}"}


@tracefork.tool(effect="write")
def refund(order: int, euros: int) -> str:
    done.append(f"refund {order}")
    return f"refunded {euros} euros"


def agent() -> str:
    """Look up an order and refund it; an order that cannot be looked up is not refunded."""
    try:
        found = look_up(17)
    except TimeoutError as error:
        return f"sorry: {error}"
    return f"{found and found['state']}: {refund(17, 9)}"


@pytest.fixture(autouse=True)
def recorded(tape: Path) -> str:
    """Record the agent, and forget the side effects of its tools."""
    done.clear()
    with tracefork.record(tape):
        said = agent()
    done.clear()
    return said


def test_replace_gives_a_tool_result(tape: Path) -> None:
    """A tool that writes after it is refused, stubbed or called."""
    change = Replace(document={"order": 17, "state": "lost"})
    with pytest.raises(WriteError, match="CALL tool:refund"), tracefork.fork(tape, 0, change):
        agent()
    with tracefork.fork(tape, 0, change, writes="stub", to=tape.with_name("stub.tape")) as branch:
        assert agent() == "lost: refunded 9 euros"
    assert (done, branch.replayed, branch.given) == ([], 1, 1)
    with tracefork.fork(tape, 0, change, writes="allow", to=tape.with_name("done.tape")):
        agent()
    assert done == ["refund 17"]
    with tracefork.replay(branch.path):
        assert agent() == "lost: refunded 9 euros"


@pytest.mark.parametrize("name", ["refund", "other"])
def test_a_tool_that_is_said_to_read_runs_again(tape: Path, name: str) -> None:
    """The user's word beats the declaration; that of another tool says nothing of this one."""
    fork = tracefork.fork(tape, 0, Drop(), reads=[name], to=tape.with_name("read.tape"))
    if name == "refund":
        with fork as branch:
            agent()
        with tracefork.Tape.open(branch.path) as opened:
            assert opened.branch is not None
            assert opened.branch.reads == ["refund"]
    else:
        with pytest.raises(WriteError, match=r"--reads refund \(reads=\['refund'\]\)"), fork:
            agent()
    assert done == (["refund 17"] if name == "refund" else [])


def test_reads_is_a_list(tape: Path) -> None:
    """A text would be taken for a list of letters."""
    with pytest.raises(tracefork.UsageError, match="list of names"):
        with tracefork.fork(tape, 0, reads="refund"):
            agent()


def test_fail_makes_a_tool_raise(tape: Path) -> None:
    """The exception is a built-in one, by its name; a status is refused."""
    with tracefork.fork(tape, 0, Fail(kind="TimeoutError", message="too slow")):
        assert agent() == "sorry: too slow"
    with (
        pytest.raises(tracefork.UsageError),
        tracefork.fork(tape, 0, Fail(status=500)),
    ):
        agent()


def test_a_tool_result_can_be_kept_dropped_or_edited(tape: Path, recorded: str) -> None:
    """The recorded value, no value, or the value for other arguments."""
    with tracefork.fork(tape, 0, Keep(), writes="stub", to=tape.with_name("a.tape")):
        assert agent() == recorded
    with tracefork.fork(tape, 0, Drop(), writes="stub", to=tape.with_name("b.tape")):
        assert agent().startswith("None: ")
    assert done == []
    edit = Edit(values={"/order": 18})
    with tracefork.fork(tape, 0, edit, writes="stub", to=tape.with_name("c.tape")):
        agent()
    assert done == ["look up 18"]

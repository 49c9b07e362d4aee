"""A cancelled task of a child releases its exchange, so that no other exchange waits for it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import DivergenceError, record, replay
from tracefork_core.children.child.joined_session import Member
from tracefork_core.children.child.remote import Remote
from tracefork_core.children.invitation import Invitation
from tracefork_core.exchange.contract import Head, Request
from tracefork_core.exchange.lane import opened as under_session
from tracefork_core.run.replay import Replaying

HEAD = Head(200, "OK", (("content-type", "text/plain"),))


class Shut:
    """A closed gate that reports when a task waits at it."""

    def __init__(self) -> None:
        self.somebody_waits = asyncio.Event()

    async def apass_on(self, owner: object) -> None:
        self.somebody_waits.set()
        await asyncio.Event().wait()


@contextmanager
def joined(gate: Shut) -> Iterator[Member]:
    """Join the open session as a child process does."""
    subprocess.run([sys.executable, "-c", "pass"], check=True)  # It opens the door.
    invitation = Invitation.read(json.loads(os.environ["TRACEFORK_EGRESS"])["invitation"])
    member = Member(invitation, lambda member: Remote(member, lambda threads: gate))
    with under_session(member, invitation.lane):
        yield member
        member.leave(clock=0, entropy=0)


def opened(member: Member, name: str) -> Any:
    return member.open(Request("GET", f"http://provider.test/{name}", (), b"", "httpx2"))


def record_two(tape: Path) -> None:
    """Record two exchanges of a child; the second continues when the first has ended."""
    with record(tape, scope="process"), joined(Shut()) as member:
        first, second = opened(member, "first"), opened(member, "second")
        first.head(HEAD)
        second.head(HEAD)
        first.chunk(b"one")
        first.end()
        second.chunk(b"two")
        second.end()


@contextmanager
def read_in_part(tape: Path) -> Iterator[Replaying]:
    """Replay what reads less of the first exchange than the recorded process did."""
    with (
        pytest.raises(DivergenceError, match="exchange 0 is read less far"),
        replay(tape, scope="process") as run,
    ):
        yield run


async def cancelled(receiving: Awaitable[object], when: Awaitable[object]) -> None:
    task = asyncio.ensure_future(receiving)
    await when
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_task_cancelled_before_its_piece_is_delivered_releases_the_exchange(tape: Path) -> None:
    """The piece waits for a quiet event loop; the rest of the response is dropped."""
    record_two(tape)
    gate = Shut()
    with replay(tape, scope="process") as run, joined(gate) as member:
        first, second = opened(member, "first"), opened(member, "second")
        assert first.receive_head() == second.receive_head() == HEAD
        asyncio.run(cancelled(first.areceive_chunk(), gate.somebody_waits.wait()))
        assert (second.receive_chunk(), second.receive_chunk()) == (b"two", None)
    assert run.reordered == 0


def test_a_task_cancelled_while_waiting_releases_the_exchange(tape: Path) -> None:
    """Its call has no answer yet, and no other exchange may receive that answer."""
    record_two(tape)
    with read_in_part(tape) as run, joined(Shut()) as member:
        first, second = opened(member, "first"), opened(member, "second")
        assert first.receive_head() == HEAD
        asyncio.run(cancelled(first.areceive_chunk(), asyncio.sleep(0)))
        assert second.receive_head() == HEAD
        assert (second.receive_chunk(), second.receive_chunk()) == (b"two", None)
    assert run.reordered == 0


def test_an_exchange_that_is_not_closed_delays_the_next(tape: Path) -> None:
    """The negative control: a response that is neither read nor closed holds up the next one."""
    record_two(tape)
    with read_in_part(tape) as run, joined(Shut()) as member:
        first, second = opened(member, "first"), opened(member, "second")
        assert first.receive_head() == second.receive_head() == HEAD
        assert (second.receive_chunk(), second.receive_chunk()) == (b"two", None)
    assert run.reordered == 2

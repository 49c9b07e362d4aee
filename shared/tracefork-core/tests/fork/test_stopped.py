"""A branch whose fork stopped before a request replays to there, and no further."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tracefork_core import DivergenceError, WriteError, fork, record, replay, rerun
from tracefork_core.tape import Tape
from tracefork_testkit import ProviderServer

from .agent import Moody, ask, ask_async


def pay(provider: ProviderServer, euros: int) -> bytes:
    return httpx2.post(f"{provider.url}/echo?key=7", content=b"%d" % euros).content


def agent(url: str, provider: ProviderServer, euros: int | None) -> bytes:
    ask(url, "how much")
    return b"" if euros is None else pay(provider, euros)


def stopped(tape: Path, url: str, provider: ProviderServer) -> Path:
    """Return the branch of a fork that was stopped before it paid."""
    with record(tape):
        agent(url, provider, 9)
    with pytest.raises(WriteError), fork(tape, at=0):
        agent(url, provider, 9)
    return tape.with_name(f"{tape.stem}.0.tape")


def test_a_branch_replays_to_its_refused_write(
    tape: Path, url: str, provider: ProviderServer
) -> None:
    """The block ends there without an error, and what it asked until then is proven."""
    branch = stopped(tape, url, provider)
    with Tape.open(branch) as opened:
        assert opened.branch is not None
        stop = opened.branch.stop
    assert stop is not None
    assert stop.words == f"stopped before POST {provider.url}/echo, a refused write"
    reached = []
    with replay(branch) as again:
        ask(url, "how much")
        try:
            pay(provider, 9)
        except Exception as error:
            reached.append(error)
            raise
    assert reached
    assert (again.stop, again.exchanges, again.digest) == (stop, 1, again.tape.digest)


@pytest.mark.parametrize("euros", [None, 8])
def test_another_end_than_the_refused_write_is_a_divergence(
    tape: Path, url: str, provider: ProviderServer, euros: int | None
) -> None:
    """It asks for nothing more, or for another payment than the refused one."""
    branch = stopped(tape, url, provider)
    with pytest.raises(DivergenceError), replay(branch):
        agent(url, provider, euros)


def test_a_refused_branch_goes_on_where_it_stopped(
    tape: Path, url: str, moody: Moody, provider: ProviderServer
) -> None:
    """A fork at its end makes the call, and pays for nothing that came before."""
    branch = stopped(tape, url, provider)
    asked = len(moody.asked)
    with fork(branch, at=1, writes="allow") as onwards:
        assert agent(url, provider, 9)
    assert (len(moody.asked), onwards.live, onwards.stop) == (asked, 1, None)


def test_a_branch_that_spent_its_calls_replays_to_there(tape: Path, url: str, moody: Moody) -> None:
    """Two tasks want one call more each: neither is an error of the replay."""

    async def two_tasks() -> None:
        ask(url, "first")
        with suppress(Exception):
            await asyncio.gather(
                ask_async(url, [{"role": "user", "content": "left"}], "async"),
                ask_async(url, [{"role": "user", "content": "right"}], "async"),
            )

    with record(tape):
        ask(url, "first")
    with rerun(tape, calls=0) as branch:
        asyncio.run(two_tasks())
    assert branch.stop is not None
    assert not branch.stop.is_write
    with replay(branch.path) as again:
        asyncio.run(two_tasks())
    assert (again.stop, again.exchanges) == (branch.stop, 1)

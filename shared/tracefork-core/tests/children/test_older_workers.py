"""Pool workers that started before the session cannot join it, so they are named."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tracefork_core import EgressError, record, replay, tool
from tracefork_testkit import ProviderServer

from .conftest import jobs

Work = Callable[[ProviderServer], str]
OLDER = r"test_older_workers\.py:\d+ gives work to a process pool whose workers were started before"
NAMED = ["process pool workers started before the block"]


@contextmanager
def executor() -> Iterator[Work]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield lambda provider: pool.submit(jobs().ask, provider.url, "hello").result()


@contextmanager
def multiprocessing_pool() -> Iterator[Work]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield lambda provider: pool.apply(jobs().ask, (provider.url, "hello"))
        pool.close()
        pool.join()


@tool(effect="read")
def look_up() -> str:
    """Be an exchange: of a tape that holds none, nothing is proven."""
    return "found"


POOLS = pytest.mark.parametrize("pool", [executor, multiprocessing_pool])


@POOLS
def test_older_workers_are_named_and_warned_about(
    pool: Callable[[], Iterator[Work]], tape: Path, moody: ProviderServer
) -> None:
    """Also those of an earlier block: the receipt lists them, and the warning names the line."""
    with pool() as work:  # type: ignore[attr-defined]
        work(moody)
        with pytest.warns(RuntimeWarning, match=OLDER) as told, record(tape) as run:
            assert (look_up(), work(moody)) != (look_up(), work(moody))
        with pytest.warns(RuntimeWarning, match=OLDER), replay(tape) as again:
            assert (look_up(), work(moody)) != (look_up(), "")
    assert run.receipt is not None
    assert run.receipt.subprocesses == again.subprocesses == NAMED
    assert len(told) == 1


@POOLS
def test_older_workers_get_no_work_if_programs_are_ruled_out(
    pool: Callable[[], Iterator[Work]], tape: Path, moody: ProviderServer
) -> None:
    """Like any program without the guard; nothing is sent."""
    with record(tape):
        pass
    with pool() as work:  # type: ignore[attr-defined]
        work(moody)
        with pytest.raises(EgressError, match="ruled out"), replay(tape, subprocesses=False):
            work(moody)
    assert len(moody.requests) == 1


@POOLS
def test_workers_of_this_block_are_not_warned_about(
    pool: Callable[[], Iterator[Work]], tape: Path, moody: ProviderServer
) -> None:
    """The control: a pool created inside the block is part of the run."""
    with warnings.catch_warnings(), record(tape) as run:
        warnings.simplefilter("error", RuntimeWarning)
        with pool() as work:  # type: ignore[attr-defined]
            work(moody)
            work(moody)
    assert run.receipt is not None
    assert (run.receipt.exchanges, run.receipt.subprocesses) == (2, [])

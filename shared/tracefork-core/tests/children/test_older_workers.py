"""Workers of a pool that are older than the session cannot join it: they are named."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tracefork_core import EgressError, record, replay
from tracefork_testkit import ProviderServer

from .conftest import jobs

Work = Callable[[ProviderServer], str]
OLDER = r"test_older_workers\.py:\d+ gives work to a process pool whose workers were started before"
NAMED = ["workers of a process pool from before"]


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


POOLS = pytest.mark.parametrize("pool", [executor, multiprocessing_pool])


@POOLS
def test_they_are_named_and_warned_of(
    pool: Callable[[], Iterator[Work]], tape: Path, moody: ProviderServer
) -> None:
    """Those of an earlier block too: the receipts have them, each warning has the line."""
    with pool() as work:  # type: ignore[attr-defined]
        work(moody)
        with pytest.warns(RuntimeWarning, match=OLDER) as told, record(tape) as run:
            assert work(moody) != work(moody)
        with pytest.warns(RuntimeWarning, match=OLDER), replay(tape) as again:
            work(moody)
    assert run.receipt is not None
    assert run.receipt.subprocesses == again.subprocesses == NAMED
    assert len(told) == 1


@POOLS
def test_they_get_no_work_where_programs_are_ruled_out(
    pool: Callable[[], Iterator[Work]], tape: Path, moody: ProviderServer
) -> None:
    """As any program that nobody watches; nothing is sent."""
    with record(tape):
        pass
    with pool() as work:  # type: ignore[attr-defined]
        work(moody)
        with pytest.raises(EgressError, match="ruled out"), replay(tape, subprocesses=False):
            work(moody)
    assert len(moody.requests) == 1


@POOLS
def test_those_of_this_block_are_not(
    pool: Callable[[], Iterator[Work]], tape: Path, moody: ProviderServer
) -> None:
    """The control: a pool that is made inside is part of the run."""
    with warnings.catch_warnings(), record(tape) as run:
        warnings.simplefilter("error", RuntimeWarning)
        with pool() as work:  # type: ignore[attr-defined]
            work(moody)
            work(moody)
    assert run.receipt is not None
    assert (run.receipt.exchanges, run.receipt.subprocesses) == (2, [])

"""Forks in processes, threads and clusters give the same result, even if workers die."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest

from tracefork_core import Tape, UsageError, fork, record
from tracefork_core.blaming.blame import blame
from tracefork_core.blaming.engine.probe import Settings
from tracefork_core.blaming.trials.pool import Pool
from tracefork_core.blaming.trials.trial import VerdictError

from .drawn import QUICK, ROOT, SHORT, Drawing, outcome


@pytest.fixture(scope="module")
def patched() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def drawing(patched: pytest.MonkeyPatch) -> ModuleType:
    """Return the module of the agent, as other processes import it."""
    patched.syspath_prepend(Path(__file__).parent)
    return import_module("drawing")


@pytest.fixture(scope="module")
def provider(patched: pytest.MonkeyPatch) -> Iterator[Drawing]:
    with Drawing() as server:
        patched.setenv("PROVIDER", server.url)
        yield server


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, provider: Drawing, drawing: ModuleType) -> Path:
    """Record a run that fails."""
    path = tmp_path_factory.mktemp("run") / "run.tape"
    with record(path):
        assert not drawing.good(drawing.agent())
    return path


def alone(run: Path, drawing: ModuleType, settings: Settings) -> object:
    """Return the outcome of a blame that runs one fork after another."""
    folder = run.parent / f"alone {settings.patience}"
    report = blame(
        run, drawing.agent, drawing.good, settings=settings, folder=folder, resume=folder.exists()
    )
    assert report.result.verdict.units == ((ROOT,) if settings is QUICK else ())
    assert {one.failed for one in report.draws} >= {True, False}
    return outcome(report)


@pytest.mark.many_processes
def test_a_killed_worker_process_does_not_change_the_result(
    run: Path,
    provider: Drawing,
    drawing: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of two workers dies after all its calls; its fork runs again, and both attempts count."""
    serially = alone(run, drawing, QUICK)
    monkeypatch.setenv("DIED", str(tmp_path / "died"))
    before = provider.live
    report = blame(run, drawing.dying, drawing.good, settings=QUICK, workers=2, folder=tmp_path)
    assert (tmp_path / "died").exists()
    assert outcome(report) == serially
    # A call is recorded before it is sent, so the ledger may have one that was never sent.
    assert report.result.ledger.live_calls - (provider.live - before) in (0, 1)


@pytest.mark.many_processes
def test_fresh_runs_each_fork_in_its_own_process_without_loss(
    run: Path,
    provider: Drawing,
    drawing: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent that works only once per process needs this; else most forks have no outcome."""
    monkeypatch.setenv("DIED", str(tmp_path / "died"))
    serially, before, folder = alone(run, drawing, SHORT), provider.live, tmp_path / "fresh"
    report = blame(
        run, drawing.staining, drawing.good, settings=SHORT, fresh=True, workers=2, folder=folder
    )
    assert (tmp_path / "died").exists()
    assert outcome(report) == serially
    assert report.result.ledger.live_calls - (provider.live - before) in (0, 1)
    stained = blame(
        run, drawing.staining, drawing.good, settings=SHORT, folder=tmp_path / "stained"
    )
    assert stained.result.undefined.forks > 0


def test_closing_a_pool_waits_for_running_forks_except_on_an_error(drawing: ModuleType) -> None:
    """Ctrl-C must not wait minutes for a fork."""
    began, may_end, done = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        began.set()
        may_end.wait()
        done.set()

    def begin(error: BaseException | None = None) -> None:
        began.clear()
        with Pool(drawing.agent, drawing.good, fresh=True) as pool:
            pool._executor().submit(slow)
            began.wait()
            if error is not None:
                raise error
            threading.Timer(0.2, may_end.set).start()

    with pytest.raises(KeyboardInterrupt):
        begin(KeyboardInterrupt())
    assert not done.is_set()
    begin()
    assert done.is_set()


@pytest.mark.parametrize("agent", ["agent", "asynchronous"])
def test_forks_in_threads_do_not_affect_each_other(
    run: Path, drawing: ModuleType, tmp_path: Path, agent: str
) -> None:
    """Forks at the same time in one process give the same result, for async agents too."""
    with ThreadPoolExecutor(3) as threads:
        report = blame(
            run,
            getattr(drawing, agent),
            drawing.good,
            settings=SHORT,
            executor=threads,
            folder=tmp_path,
        )
    assert outcome(report) == alone(run, drawing, SHORT)


def test_calls_of_an_oracle_are_on_no_tape(
    run: Path, drawing: ModuleType, provider: Drawing, tmp_path: Path
) -> None:
    """They are live even while other threads have forks open."""
    branch, opened, graded = run.with_name("other.tape"), threading.Event(), threading.Event()

    def other() -> None:
        with fork(run, 1, to=branch, overwrite=True):
            drawing.agent()
            opened.set()
            assert graded.wait(60)

    def oracle(answer: object) -> bool:
        with httpx2.Client(verify=False) as client:
            assert client.post(f"{provider.url}/echo", content=b"good?").text == "good?"
        return bool(drawing.good(answer))

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(other)
        assert opened.wait(60)
        report = blame(run, drawing.agent, oracle, settings=SHORT, folder=tmp_path)
        graded.set()
        done.result()
    assert outcome(report) == alone(run, drawing, SHORT)
    with Tape.open(branch) as tape:
        assert all("chat/completions" in one.url for one in tape.exchanges)
        assert len(tape.exchanges) == drawing.STEPS


def test_an_oracle_that_cannot_be_pickled_is_refused(
    run: Path, drawing: ModuleType, tmp_path: Path
) -> None:
    """Blame refuses before any call, and says how to fix it."""
    with pytest.raises(UsageError, match=r"cannot send the oracle .* top level of a module"):
        blame(run, drawing.agent, lambda said: said == "refund", workers=2, folder=tmp_path)


@pytest.mark.many_processes
@pytest.mark.parametrize("options", [{"workers": 2}, {"fresh": True}])
def test_an_oracle_without_a_verdict_ends_a_blame_from_any_process(
    run: Path, drawing: ModuleType, tmp_path: Path, options: dict[str, Any]
) -> None:
    """The error reaches the caller from a worker too, and is not retried as a fork that died."""
    with pytest.raises(VerdictError):
        blame(run, drawing.agent, drawing.silent, folder=tmp_path, settings=SHORT, **options)


@pytest.mark.many_processes
def test_a_killed_cluster_worker_does_not_change_the_result(
    run: Path, drawing: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dask cluster has two processes, and one dies during a fork."""
    from distributed import Client, LocalCluster

    serially = alone(run, drawing, SHORT)
    monkeypatch.setenv("DIED", str(tmp_path / "died"))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        report = blame(
            run,
            drawing.dying,
            drawing.good,
            settings=SHORT,
            executor=client.get_executor(),
            folder=tmp_path,
        )
    assert (tmp_path / "died").exists()
    assert outcome(report) == serially

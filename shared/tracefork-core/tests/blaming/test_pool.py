"""Forks run in processes, threads and clusters, some of which die: it comes to the same."""

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
    """Return what a blame comes to that runs one fork after the other."""
    folder = run.parent / f"alone {settings.patience}"
    report = blame(
        run, drawing.agent, drawing.good, settings=settings, folder=folder, resume=folder.exists()
    )
    assert report.result.verdict.units == ((ROOT,) if settings is QUICK else ())
    assert {one.failed for one in report.draws} >= {True, False}
    return outcome(report)


@pytest.mark.many_processes
def test_processes_of_which_one_is_killed_come_to_the_same(
    run: Path,
    provider: Drawing,
    drawing: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two at a time, and one dies with all its answers: its fork runs again, and both count."""
    serially = alone(run, drawing, QUICK)
    monkeypatch.setenv("DIED", str(tmp_path / "died"))
    before = provider.live
    report = blame(run, drawing.dying, drawing.good, settings=QUICK, workers=2, folder=tmp_path)
    assert (tmp_path / "died").exists()
    assert outcome(report) == serially
    # What was put down and cut off before it left is counted as well, and may not have been asked.
    assert report.result.ledger.live_calls - (provider.live - before) in (0, 1)


@pytest.mark.many_processes
def test_each_fork_has_a_fresh_process_and_loses_nothing_with_it(
    run: Path,
    provider: Drawing,
    drawing: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent that can run but once in a process does; in one process, most forks have no end."""
    monkeypatch.setenv("DIED", str(tmp_path / "died"))
    serially, before, folder = alone(run, drawing, SHORT), provider.live, tmp_path / "fresh"
    report = blame(
        run, drawing.staining, drawing.good, settings=SHORT, fresh=True, workers=2, folder=folder
    )
    assert (tmp_path / "died").exists()
    assert outcome(report) == serially
    assert report.result.ledger.live_calls - (provider.live - before) in (0, 1)
    stained = blame(run, drawing.staining, drawing.good, folder=tmp_path / "stained")
    assert stained.result.undefined.forks > 0


def test_who_leaves_waits_for_what_runs_and_not_on_an_error(drawing: ModuleType) -> None:
    """Ctrl-C is no time to wait for a fork of minutes."""
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
def test_threads_do_not_see_one_another(
    run: Path, drawing: ModuleType, tmp_path: Path, agent: str
) -> None:
    """Forks at the same time in one process come to the same, of async agents too."""
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


def test_what_an_oracle_asks_is_of_no_fork(
    run: Path, drawing: ModuleType, provider: Drawing, tmp_path: Path
) -> None:
    """While others are open in other threads, too: it is live, and on no tape."""
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


def test_what_no_other_process_can_import_is_refused(
    run: Path, drawing: ModuleType, tmp_path: Path
) -> None:
    """Before anything is spent, and with what to do about it."""
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
def test_a_cluster_of_which_a_worker_is_killed_comes_to_the_same(
    run: Path, drawing: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster of two processes, one of which dies in the middle of a fork."""
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

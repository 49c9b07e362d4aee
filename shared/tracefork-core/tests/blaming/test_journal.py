"""One process at a time writes the journal of a blame, and a full disk loses nothing of it."""

from __future__ import annotations

import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from tracefork_core import TapeError, UsageError
from tracefork_core.blaming.blame import blame
from tracefork_core.blaming.trials.runner import Progress
from tracefork_core.blaming.trials.trial_journal import JOURNAL, beside, free, latest, read
from tracefork_core.errors import UnwritableError

from . import drawing
from .drawn import SHORT, Drawing, outcome


def test_only_one_blame_writes_to_a_folder(tape: Path, desk: Drawing) -> None:
    """Resuming a blame that still runs is refused: together they would spend the budget twice."""
    refused: list[str] = []

    def meddle(progress: Progress) -> None:
        if progress.forks == 3:
            with pytest.raises(UsageError, match="in use") as error:
                blame(tape, drawing.agent, drawing.good, settings=SHORT, resume=True)
            refused.append(str(error.value))

    report = blame(tape, drawing.agent, drawing.good, settings=SHORT, watch=meddle)
    assert refused
    journal = beside(tape) / JOURNAL
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600  # It holds what the agent was answered.
    assert report.result.ledger.live_calls == desk.live
    # Resuming a finished blame costs nothing.
    again = blame(tape, drawing.agent, drawing.good, settings=SHORT, resume=True)
    assert (again.draws, desk.live) == (report.draws, report.result.ledger.live_calls)


@pytest.mark.parametrize(("workers", "room"), [(1, 100), (1, 4000), (2, 100)])
def test_a_blame_resumes_after_a_full_disk_without_loss(
    tape: Path, desk: Drawing, workers: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No fork loses its outcome, no call is missing, and the result is the same in the end.

    The disk is full at the next line of the journal, or at the next branch.
    """
    monkeypatch.syspath_prepend(Path(__file__).parent)
    agent = import_module("drawing")  # By the name that other processes import it by.
    again = partial(blame, tape, agent.agent, agent.good, settings=SHORT)
    alone = again(folder=tape.parent / "alone")
    desk.forget()
    with pytest.raises(KeyboardInterrupt):
        again(workers=workers, watch=_stop_at(5))
    journal = tape.with_name("run.tape.blame") / JOURNAL
    paid = desk.live
    with _no_file_above(journal.stat().st_size + room), pytest.raises(UnwritableError) as full:
        again(workers=workers, resume=True)
    assert "Make room there, then resume" in str(full.value)
    report = again(workers=workers, resume=True)
    assert outcome(report) == outcome(alone)
    assert not [draw for draw in report.draws if draw.undefined]
    assert report.result.ledger.live_calls == desk.live > paid


@pytest.mark.parametrize("left", [b"", b'{"hea', b'{"header":{"digest":"1'])
def test_a_journal_with_an_incomplete_first_line_counts_as_missing(tape: Path, left: bytes) -> None:
    """The disk was full before the header was written, so the blame had not started."""
    folder = tape.with_name("run.tape.blame")
    folder.mkdir()
    (folder / JOURNAL).write_bytes(left)
    with pytest.raises(UsageError, match="no blame in"):
        read(folder / JOURNAL)
    report = blame(tape, drawing.agent, drawing.good, settings=SHORT)
    assert len(read(folder / JOURNAL).trials) == len(report.draws)


def test_a_finished_blame_does_not_block_the_next(tape: Path) -> None:
    """The next has a folder of its own, and `resume` reads the last one again, at no cost."""
    report = blame(tape, drawing.agent, drawing.good, settings=SHORT)
    assert report.result.verdict.kind != "undecided"
    other = blame(tape, drawing.agent, drawing.good, settings=SHORT, seed=1)
    second = tape.with_name("run.tape.blame-2")
    assert (latest(tape), free(tape)) == (second, tape.with_name("run.tape.blame-3"))
    assert len(read(second / JOURNAL).trials) == len(other.draws)
    again = blame(tape, drawing.agent, drawing.good, settings=SHORT, seed=1, resume=True)
    assert again == other


def test_blame_does_not_overwrite_another_file_in_place_of_the_journal(tape: Path) -> None:
    """A file there that is not a journal is refused and stays unchanged."""
    journal = tape.with_name("run.tape.blame") / JOURNAL
    journal.parent.mkdir()
    journal.write_bytes(b"my notes")
    with pytest.raises(TapeError, match="not the journal of a blame"):
        blame(tape, drawing.agent, drawing.good, resume=True)
    assert journal.read_bytes() == b"my notes"


@pytest.mark.parametrize("change", [(b'"calls":', b'"calls":-'), (b'"number":1,', b'"number":0,')])
def test_a_journal_with_impossible_trials_is_corrupt(
    tape: Path, change: tuple[bytes, bytes]
) -> None:
    """Negative calls or a repeated number would add to the budget."""
    with pytest.raises(KeyboardInterrupt):
        blame(tape, drawing.agent, drawing.good, settings=SHORT, watch=_stop_at(8))
    journal = tape.with_name("run.tape.blame") / JOURNAL
    data = journal.read_bytes()
    assert read(journal).trials
    assert change[0] in data
    journal.write_bytes(data.replace(*change))
    with pytest.raises(TapeError, match="do not add up"):
        read(journal)


def _stop_at(forks: int) -> Callable[[Progress], None]:
    def stop(progress: Progress) -> None:
        if progress.forks == forks:
            raise KeyboardInterrupt

    return stop


@contextmanager
def _no_file_above(size: int) -> Iterator[None]:
    """Limit the size of all files of this process, to simulate a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

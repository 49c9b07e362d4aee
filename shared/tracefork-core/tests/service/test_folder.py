"""The folder of a recorder stays within its bounds, whichever process removes what is too much."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Recorder
from tracefork_core.service import folder as folders
from tracefork_core.service.folder import Bounds, surplus


def run(recorder: Recorder, id: str, label: str = "") -> Path:  # noqa: A002
    """Record a run that fails, and return the path of its tape."""
    recorded = []

    @recorder.recording("job", id=id)
    def job() -> None:
        recorded.append(recorder.current())
        if label:
            recorder.current().mark(label)
        raise LookupError

    with pytest.raises(LookupError):
        job()
    time.sleep(0.002)  # The next one is younger.
    assert recorded[0].tape is not None
    return recorded[0].tape


def ids(folder: Path) -> list[str]:
    """Return the ids of the tapes in a folder, oldest first."""
    return [path.stem.rpartition("_")[2] for path in sorted(folder.glob("*.tape"))]


def test_the_oldest_tapes_are_removed_but_no_marked_one(tmp_path: Path) -> None:
    """Three fit. A marked tape stays and does not count, nor does a tape of the user's own."""
    own = tmp_path / "run.tape"
    own.write_bytes(b"x")
    recorder = Recorder(tmp_path, max_tapes=3)
    run(recorder, "a", "look at this")
    for name in "bcdef":
        run(recorder, name)
    assert ids(tmp_path) == ["a", "d", "e", "f", "run"]


def test_a_folder_holds_no_more_bytes_than_allowed(tmp_path: Path) -> None:
    """The bound is that of two tapes and a half."""
    size = run(Recorder(tmp_path / "one"), "a").stat().st_size
    recorder = Recorder(tmp_path / "many", max_bytes=int(size * 2.5))
    for name in "abcdef":
        run(recorder, name)
    assert ids(recorder.folder) == ["e", "f"]


@pytest.mark.parametrize("age", [60, "1m", timedelta(minutes=1)])
def test_old_tapes_are_removed(tmp_path: Path, age: Any) -> None:
    """The control is not old enough."""
    recorder = Recorder(tmp_path, max_age=age)
    for name, seconds in (("old", 61), ("young", 50)):
        path = run(recorder, name)
        os.utime(path, (time.time() - seconds,) * 2)
    run(recorder, "new")
    assert ids(tmp_path) == ["young", "new"]


def test_a_tape_that_a_branch_needs_stays(tmp_path: Path) -> None:
    """A branch lies beside its parent, under the parent's name."""
    recorder = Recorder(tmp_path, max_tapes=1)
    needed = run(recorder, "a")
    needed.with_name(f"{needed.stem}.0.tape").write_bytes(b"a branch")
    for name in "bc":
        run(recorder, name)
    assert needed.exists()
    assert ids(tmp_path) == ["a.0", "a", "c"]


def test_two_processes_may_remove_the_same_tape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have listed it before either removes it."""
    for name in "abcd":
        run(Recorder(tmp_path), name)
    listed = surplus(tmp_path, Bounds(tapes=1))
    assert len(listed) == 3
    monkeypatch.setattr(folders, "surplus", lambda *_: listed)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: folders.shrink(tmp_path, Bounds(tapes=1)), range(4)))
    assert ids(tmp_path) == ["d"]


def test_a_recorder_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    """The draft that is a second old belongs to a process that runs."""
    old, young = (tmp_path / f".tracefork-{n}-job.tape.new" for n in (1, 2))
    for draft, seconds in ((old, 3600), (young, 1)):
        draft.write_bytes(b"half a tape")
        os.utime(draft, (time.time() - seconds,) * 2)
    Recorder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [young.name]


def test_two_runs_with_one_id_get_two_tapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even at the same millisecond."""
    monkeypatch.setattr("tracefork_core.service.service_run.time_ns", lambda: 10**18)
    recorder = Recorder(tmp_path)
    first, second = run(recorder, "same"), run(recorder, "same")
    assert first.name == "20010909T014640-000-job_same.tape"
    assert second.name == "20010909T014640-000-job_same-2.tape"

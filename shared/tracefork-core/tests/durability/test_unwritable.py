"""A tape that becomes unwritable ends the recording, never the agent."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import ReplayError, Tape, TapeError, UsageError, record, replay
from tracefork_core.tape.file import TapeFile
from tracefork_core.tape.integrity import check_integrity
from tracefork_testkit import ProviderServer


def test_a_full_disk_stops_the_recording_and_not_the_agent(
    tape: Path, provider: ProviderServer, nursery: Any
) -> None:
    """The agent runs as on a disk with space; the block's error names the tape."""
    roomy = nursery.run("record", "large_ones", provider.url, tape.with_name("roomy.tape"))
    full = nursery.run("record", "large_ones_on_a_full_disk", provider.url, tape)
    assert (roomy.error, len(roomy.seen)) == (None, 20)
    assert full.seen == roomy.seen
    assert full.error == "UnwritableError"
    assert f"recording to {tape} stopped: " in full.message
    with Tape.open(tape) as kept:
        assert not kept.complete
        whole = [exchange for exchange in kept.exchanges if exchange.end == "eof"]
        assert 0 < len(whole) < 20
        assert [exchange.n for exchange in whole] == list(range(len(whole)))
        assert all(len(exchange.request_body) > 40_000 for exchange in whole)


def cut_off(tape: Path) -> None:
    """Take from this process the right to write to the open files of a tape."""
    for fd in Path("/proc/self/fd").iterdir():
        if fd.is_symlink() and str(fd.readlink()) in (str(tape), f"{tape}-wal"):
            readonly = os.open(fd.readlink(), os.O_RDONLY)
            os.dup2(readonly, int(fd.name))
            os.close(readonly)


def test_a_tape_made_unwritable_keeps_what_it_has(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The agent continues. The tape replays up to there and then says that it is incomplete."""

    def agent(harm: Callable[[Path], None]) -> None:
        assert http.get(f"{provider.url}/bytes/1").content == b"\0"
        harm(tape)
        assert http.get(f"{provider.url}/bytes/2").content == b"\0\1"
        assert http.get(f"{provider.url}/bytes/3").content == b"\0\1\2"
        finished.append(harm)

    finished: list[object] = []
    with pytest.raises(TapeError, match=str(tape)), record(tape):
        agent(cut_off)
    assert finished == [cut_off]
    with pytest.raises(ReplayError, match=tape.name), replay(tape):
        agent(lambda tape: finished.append(tape))  # noqa: PLW0108
    assert finished == [cut_off, tape]


def test_a_strict_recording_stops_the_agent_with_the_tape(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """No call is made that cannot be recorded: the agent gets no answer, then or later."""
    seen: list[bytes] = []

    def agent() -> None:
        for size in (1, 2, 3):
            seen.append(http.get(f"{provider.url}/bytes/{size}").content)
            if size == 1:
                cut_off(tape)

    with pytest.raises(TapeError, match=str(tape)):
        with record(tape, strict=True):
            agent()
    assert seen == [b"\0"]
    with Tape.open(tape) as kept:
        assert [exchange.end for exchange in kept.exchanges][:1] == ["eof"]


def removed(tape: Path) -> None:
    tape.unlink()


def moved(tape: Path) -> None:
    tape.rename(tape.with_name("moved.tape"))


def folder_removed(tape: Path) -> None:
    shutil.rmtree(tape.parent)


def replaced(tape: Path) -> None:
    tape.unlink()
    tape.touch()


@pytest.mark.parametrize("harm", [removed, moved, folder_removed, replaced])
def test_removing_a_tape_during_its_recording_raises(
    tmp_path: Path, provider: ProviderServer, http: httpx2.Client, harm: Callable[[Path], None]
) -> None:
    """SQLite would write on to a file without a name, so there is no receipt."""
    (tmp_path / "runs").mkdir()
    tape = tmp_path / "runs" / "run.tape"

    def agent() -> None:
        http.get(f"{provider.url}/bytes/1")
        harm(tape)
        assert http.get(f"{provider.url}/bytes/2").content == b"\0\1"

    with pytest.raises(TapeError, match=str(tape)), record(tape):
        agent()


def test_the_current_folder_may_change_during_a_recording(
    tmp_path: Path, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is resolved when the block begins."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with ProviderServer() as provider, record("run.tape"):
        monkeypatch.chdir(tmp_path / "elsewhere")
        http.get(f"{provider.url}/bytes/1")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["run.tape"]
    with Tape.open(tmp_path / "run.tape") as recorded:
        assert recorded.complete


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_second_process_cannot_record_to_the_same_file(
    tape: Path, provider: ProviderServer, http: httpx2.Client, *, overwrite: bool
) -> None:
    """It gets a UsageError, and the first recording is not disturbed."""
    code = f"""
from tracefork_core import UsageError, record
try:
    with record({str(tape)!r}, overwrite={overwrite}):
        print("recorded")
except UsageError as error:
    print(error)
"""
    with record(tape):
        http.get(f"{provider.url}/bytes/1")
        child = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        http.get(f"{provider.url}/bytes/2")
    assert ("in use" if overwrite else "exists") in child.stdout
    with Tape.open(tape) as recorded:
        assert recorded.complete
        assert [exchange.response_body for exchange in recorded.exchanges] == [b"\0", b"\0\1"]


def test_a_second_recording_in_this_process_is_refused_as_well(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """Of two blocks with one file, the second does not start."""
    with record(tape) as run:
        with pytest.raises(UsageError, match=tape.name), record(tape, overwrite=True):
            raise AssertionError("it started")
        http.get(f"{provider.url}/bytes/1")
    assert run.receipt is not None
    assert run.receipt.exchanges == 1


@pytest.mark.parametrize("agent", ["a_disk_too_full_for_the_journal", "a_disk_full_at_the_end"])
def test_a_disk_that_fills_at_any_write_is_reported_once(
    tape: Path, provider: ProviderServer, nursery: Any, agent: str
) -> None:
    """In the journal or at the end: the agent gets its answers."""
    full = nursery.run("record", agent, provider.url, tape)
    asked = 3 if agent == "a_disk_too_full_for_the_journal" else 20
    assert [said["query"] for said in full.seen] == [f"/echo?i={i}" for i in range(asked)]
    assert full.error == "UnwritableError"
    assert full.message.count("stopped: ") == 1
    assert not (result := check_integrity(tape)).damage
    assert not result.complete


def test_a_disk_that_fills_after_the_end_leaves_a_complete_tape(
    tape: Path, provider: ProviderServer, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end is in the log beside the tape then, so nothing is lost and nothing is reported."""
    fold, limits = TapeFile._fold, resource.getrlimit(resource.RLIMIT_FSIZE)

    def fold_on_a_full_disk(file: TapeFile) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (tape.stat().st_size, limits[1]))
        fold(file)

    monkeypatch.setattr(TapeFile, "_fold", fold_on_a_full_disk)
    try:
        with record(tape) as run:
            http.post(f"{provider.url}/echo", content=os.urandom(20_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert run.receipt is not None
    assert tape.with_name(f"{tape.name}-wal").exists()
    with Tape.open(tape) as kept:
        assert kept.complete
        assert kept.digest == run.receipt.digest
        assert len(kept.exchanges[0].request_body) == 20_000


def test_a_read_only_folder_is_refused_before_the_agent_starts(
    provider: ProviderServer, nursery: Any
) -> None:
    """No request is sent, and the error names the tape."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        tape = folder / "run.tape"
        refused = nursery.run("record", "three", provider.url, tape, weak=True)
        assert (refused.error, refused.began, refused.seen) == ("UnwritableError", False, [])
        assert f"cannot record to {tape}" in refused.message
        folder.chmod(0o755)
        assert list(folder.iterdir()) == []


def test_only_its_owner_may_read_a_tape(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """The tape, its log and its journal, from their first byte on, with any umask."""
    before = os.umask(0)
    try:
        with record(tape):
            http.get(f"{provider.url}/bytes/1")
            files = {file.name: file.stat().st_mode & 0o777 for file in tape.parent.iterdir()}
    finally:
        os.umask(before)
    assert {"run.tape", "run.tape-wal", "run.tape-flight"} <= set(files)
    assert set(files.values()) == {0o600}


def test_two_processes_record_into_one_folder(
    tape: Path, provider: ProviderServer, nursery: Any, another_nursery: Any
) -> None:
    """Each has its own tape, with none of the other's exchanges."""
    tapes = [tape, tape.with_name("other.tape")]
    with ThreadPoolExecutor(2) as pool:
        both = list(
            pool.map(
                lambda one, path: one.run("record", "many", provider.url, path),
                (nursery, another_nursery),
                tapes,
            )
        )
    assert [ended.error for ended in both] == [None, None]
    for path in tapes:
        result = check_integrity(path)
        assert (result.damage, result.complete, result.exchanges) == ([], True, 40)
    assert sorted(tape.parent.iterdir()) == sorted(tapes)

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tracefork_core.cli.agent import command_store


def run(tape: Path, digest: str = "d") -> command_store.Run:
    return command_store.Run(str(tape), digest, 1, "/work", "script", "agent.py", ["a b"])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_only_the_owner_can_read_a_stored_command(home: Path, tmp_path: Path) -> None:
    """The folder has mode 0700 and the file 0600."""
    command_store.remember(run(tmp_path / "x.tape"))
    (file,) = (home / "runs").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (home, home / "runs")} == {0o700}
    found = command_store.recall(tmp_path / "x.tape")
    assert found == run(tmp_path / "x.tape")
    assert command_store.recall(tmp_path / "y.tape") is None


def test_the_newest_command_of_a_path_counts(home: Path, tmp_path: Path) -> None:
    """A tape recorded again at the same path replaces the older command."""
    for digest in ("old", "new"):
        command_store.remember(run(tmp_path / "x.tape", digest))
    found = command_store.recall(tmp_path / "x.tape")
    assert found is not None
    assert found.digest == "new"
    assert len(list((home / "runs").iterdir())) == 1


def test_a_path_is_the_same_however_it_is_written(home: Path, tmp_path: Path) -> None:
    """The path may contain `..`, or a link."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "runs")
    command_store.remember(run(tmp_path / "runs" / "x.tape"))
    for way in ("runs/../runs/x.tape", "link/x.tape"):
        assert command_store.recall(tmp_path / way) == run(tmp_path / "runs" / "x.tape")
    assert command_store.recall(tmp_path / "runs" / ".." / "x.tape") is None


@pytest.mark.parametrize("harm", ["garbage", "writable"])
def test_a_file_that_others_may_write_is_ignored(home: Path, tmp_path: Path, harm: str) -> None:
    """A file that holds no command is ignored too."""
    command_store.remember(run(tmp_path / "x.tape"))
    (file,) = (home / "runs").iterdir()
    if harm == "garbage":
        file.write_bytes(b"\xff{")
    else:
        file.chmod(0o666)
    assert command_store.recall(tmp_path / "x.tape") is None
    assert list(command_store.runs()) == []


def test_the_store_is_in_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is TRACEFORK_HOME, else in XDG_DATA_HOME, else in ~/.local/share."""
    assert command_store.home() == tmp_path / "home"
    monkeypatch.delenv("TRACEFORK_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert command_store.home() == tmp_path / "data" / "tracefork"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert command_store.home() == tmp_path / ".local" / "share" / "tracefork"

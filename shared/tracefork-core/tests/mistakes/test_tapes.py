"""Invalid tapes: missing, another file, a folder, a newer format, another machine's, in use."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tracefork_core.cli.main import main
from tracefork_core.tape.schema import VERSION

from .conftest import Errs


def nothing(tape: Path) -> None:
    tape.unlink()


def folder(tape: Path) -> None:
    tape.unlink()
    tape.mkdir()


def text(tape: Path) -> None:
    tape.write_text("Where is order 17?\n")


def empty(tape: Path) -> None:
    os.truncate(tape, 0)


def cut_short(tape: Path) -> None:
    os.truncate(tape, tape.stat().st_size // 2)


def another_database(tape: Path) -> None:
    tape.unlink()
    with closing(sqlite3.connect(tape)) as db, db:
        db.execute("CREATE TABLE notes (text TEXT)")


def hostile(tape: Path) -> None:
    with closing(sqlite3.connect(tape)) as db, db:
        db.execute("CREATE TRIGGER t AFTER INSERT ON meta BEGIN SELECT load_extension('x'); END")


def newer(tape: Path) -> None:
    with closing(sqlite3.connect(tape)) as db, db:
        db.execute(f"PRAGMA user_version={VERSION + 1}")
        db.execute("DELETE FROM meta WHERE key = 'checksum'")


FILES: dict[str, Callable[[Path], None]] = {
    "no-tape": nothing,
    "a-folder": folder,
    "a-text": text,
    "an-empty-file": empty,
    "a-tape-cut-short": cut_short,
    "another-database": another_database,
    "a-hostile-tape": hostile,
    "a-newer-tape": newer,
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_tape_is_refused(errs: Errs, name: str) -> None:
    """A newer tape is read as far as its format is known, and replays. Other files are not read."""
    FILES[name](errs.folder / "agent.tape")
    done = errs.runs(name, "replay", "agent.tape", "agent.py")
    assert done.exit == {"no-tape": 2, "a-folder": 2, "a-newer-tape": 0}.get(name, 5)
    assert not done.out or name == "a-newer-tape"


def test_every_command_reports_an_invalid_tape_alike(
    errs: Errs, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence is that of `tracefork replay`."""
    text(errs.folder / "agent.tape")
    for words in (
        ["replay", "agent.tape"],
        ["verify", "agent.tape"],
        ["verify", "--integrity", "agent.tape"],
        ["fork", "agent.tape", "--at", "0"],
        ["try", "agent.tape", "--at", "0"],
        ["race", "agent.tape"],
        ["blame", "agent.tape", "--oracle", "exit"],
        ["bisect", "agent.tape"],
        ["show", "agent.tape"],
        ["tree", "agent.tape"],
        ["redact", "agent.tape"],
        ["pack", "agent.tape"],
        ["unpack", str(errs.folder / "agent.tape")],
    ):
        assert main(words) == 5
        said = capsys.readouterr()
        assert (said.out, said.err.count("agent.tape is not a tape")) == ("", 1)


def test_ls_and_scan_continue_after_an_invalid_tape(
    errs: Errs, capsys: pytest.CaptureFixture[str]
) -> None:
    """They name it, and list the others."""
    text(errs.folder / "notes.tape")
    assert errs("scan-a-text", "scan", ".").exit == 5
    assert main(["ls"]) == 0
    assert "notes.tape: " in capsys.readouterr().out


def test_a_branch_without_its_parent_names_the_missing_tape(errs: Errs) -> None:
    """A branch holds only its own exchanges."""
    words = ["fork", "agent.tape", "--at=1", "--text=Hi", "agent.py"]
    assert errs.shell.tracefork(*words).exit == 0
    (errs.folder / "agent.tape").unlink()
    assert errs("a-branch-alone", "show", "agent.1.tape").exit == 5


def test_a_tape_of_another_machine_says_what_is_needed_to_replay(errs: Errs) -> None:
    """tracefork takes no command from a tape. Tapes without bodies or patterns say what to do."""
    assert errs("a-strangers-tape", "replay", "agent.tape").exit == 2
    errs.shell.write("quiet.py", "print('here')\n")
    shell = errs.shell
    shell.tracefork("record", "--mode=metadata", "-o", "hashes.tape", "quiet.py")
    assert errs("hashes-alone", "replay", "hashes.tape", "quiet.py").exit == 3
    assert errs("blame-hashes", "blame", "hashes.tape", "--oracle=exit", "quiet.py").exit == 3
    shell.tracefork("record", "--mask=re:tick[a-z]+", "-o", "masked.tape", "quiet.py")
    assert errs("patterns-left-away", "replay", "masked.tape", "quiet.py").exit == 2
    shutil.copy(errs.folder / "agent.tape", errs.folder / "masked.tape")
    assert errs("another-tape-of-that-name", "replay", "masked.tape").exit == 2


def test_a_sealed_tape_says_where_keys_are_looked_for(errs: Errs, own_key: str) -> None:
    """Both when sealing without a recipient and when opening without the key."""
    errs.shell.write("quiet.py", "print('here')\n")
    sealed = ["record", "--mode=sealed", "-o", "sealed.tape", "quiet.py"]
    assert errs("sealed-for-nobody", *sealed).exit == 2
    assert errs.shell.tracefork(*sealed, f"--to={own_key}").exit == 0
    del os.environ["TRACEFORK_IDENTITY"]
    assert errs("sealed-for-another", "replay", "sealed.tape").exit == 5


RECORDER = """\
import sys
from tracefork_core import record
with record("busy.tape"):
    print(flush=True)
    sys.stdin.read()
"""


def test_a_second_recorder_of_a_tape_is_refused(errs: Errs) -> None:
    """The first recording continues and stays intact."""
    running = subprocess.Popen(
        [sys.executable, "-c", RECORDER],
        cwd=errs.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"\n"
        words = ["record", "-o", "busy.tape", "agent.py"]
        assert errs("a-taken-name", *words).exit == 2
        assert errs("two-recorders", *words, "--overwrite").exit == 2
        assert errs("sign-while-recording", "sign", "busy.tape", "--key", "k").exit == 2
        running.communicate(b"")
    assert running.returncode == 0
    assert "undamaged" in errs.shell.tracefork("verify", "--integrity", "busy.tape").out


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "no-such-exchange": "show agent.tape 9",
        "no-number": "show agent.tape first",
        "a-body-of-no-exchange": "show agent.tape --raw",
        "no-such-checkpoint": "show agent.tape --checkpoint abc",
        "fork-where": "fork agent.tape",
        "fork-past-the-end": "fork agent.tape agent.py --at 9",
        "fork-at-no-step": "fork agent.tape agent.py --at plan",
        "two-changes": "fork agent.tape agent.py --at 0 --text a --drop",
        "change-before-the-fork": "fork agent.tape agent.py --at 1 --hold 0",
        "replace-with-no-file": "fork agent.tape agent.py --at 0 --replace gone.json",
        "no-such-status": "fork agent.tape agent.py --at 0 --fail 42",
        "no-such-exception": "fork agent.tape agent.py --at 0 --fail banana",
        "branch-elsewhere": "fork agent.tape agent.py --at 0 --text a -o no/branch.tape",
        "try-where": "try agent.tape",
        "pack-onto-another": "pack agent.tape -o support.tape",
        "pack-into-no-folder": "pack agent.tape -o no/such/x.tape",
        "redact-onto-itself": "redact agent.tape -o agent.tape",
        "unpack-onto-itself": "unpack agent.tape",
        "unpack-into-no-folder": "unpack agent.tape --into no",
        "sign-with-no-key": "sign agent.tape --key gone.key",
        "sign-with-no-key-at-all": "sign agent.tape --key agent.py",
        "no-signature": "verify agent.tape --signed-by agent.py",
        "two-checks": "verify agent.tape --integrity --signed-by agent.py",
        "gc-of-a-tape": "gc agent.tape",
        "gc-of-no-age": "gc --older-than soon",
        "ls-of-no-folder": "ls gone",
        "import-of-nothing": "import --langgraph-sqlite gone.db -o new.tape",
        "import-of-no-file": "import gone.yaml -o new.tape",
        "import-of-no-recording": "import agent.py -o new.tape",
        "import-without-a-name": "import agent.py",
        "import-without-a-file": "import -o new.tape",
        "import-onto-a-tape": "import agent.py -o agent.tape",
    }.items(),
)
def test_a_missing_part_of_a_tape_is_refused_with_what_exists(
    errs: Errs, name: str, words: str
) -> None:
    """Nothing is written or overwritten."""
    before = sorted(errs.folder.iterdir())
    assert errs(name, *words.split()).exit == 2
    assert sorted(errs.folder.iterdir()) == before


@pytest.mark.parametrize("command", ["show", "replay", "ls", "verify", "scan"])
def test_a_file_name_that_is_too_long_is_reported(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file system refuses the name before tracefork can look for the tape."""
    assert main([command, "a" * 300]) == 2
    assert "300 characters" in capsys.readouterr().err

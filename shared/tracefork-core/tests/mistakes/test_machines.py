"""Failures of the machine: full disks, permissions, no home, no reader, no terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tracefork_core import Tape

from ..cli.conftest import Done
from .conftest import Errs

LARGE = """\
import os
import resource
import signal

import httpx2

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with httpx2.Client(verify=False) as client:
    for size in (10, 400_000):
        answer = client.post(os.environ["PROVIDER"] + "/echo", content=os.urandom(size))
        print(len(answer.content))
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
"""


def test_a_full_disk_ends_the_recording_but_not_the_agent(errs: Errs) -> None:
    """The message comes after the agent, and the tape keeps what it has."""
    errs.shell.write("large.py", LARGE)
    assert errs.runs("no-disk", "record", "large.py").exit == 5
    with Tape.open(errs.folder / "large.tape") as tape:
        assert tape.exchanges[0].end == "eof"
        assert not tape.complete


def begun(errs: Errs, before: str, *words: str) -> Done:
    """Run a command in a Python that first runs other code."""
    code = f"import os, sys\n{before}\nfrom tracefork_core.cli.main import main\n"
    # As for the installed command, the current folder is no place to import from.
    done = errs.shell.python("-P", "-c", f"{code}sys.exit(main({list(words)!r}))")
    assert "Traceback" not in done.err
    return done


FULL = """\
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""


def test_a_full_disk_is_reported_before_the_agent_starts(errs: Errs) -> None:
    """The agent prints nothing."""
    words = ["record", "agent.py"]
    done = errs.told("no-disk-at-all", words, begun(errs, FULL, *words))
    assert (done.exit, done.out) == (5, "")


@pytest.mark.parametrize("words", [["ls"], ["record", "agent.py"]])
def test_a_removed_current_folder_is_reported(errs: Errs, words: list[str]) -> None:
    """A shell does not tell you that the folder is gone."""
    before = "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')"
    done = begun(errs, before, *words)
    assert (done.exit, done.out) == (2, "")
    assert done.err.startswith("✗ the current folder was removed")
    assert done.err.count("\n") == 1


def test_an_unwritable_home_does_not_stop_a_recording(errs: Errs) -> None:
    """Only the command of the run is not stored, so you must type it again."""
    errs.shell.write("quiet.py", "print('here')\n")
    errs.shell.write("file", "")
    home = str(errs.folder / "file")
    assert errs.runs("no-home", "record", "quiet.py", TRACEFORK_HOME=home).exit == 0


def test_a_file_in_place_of_a_folder_is_refused(errs: Errs) -> None:
    """No user can write there, not even root."""
    assert errs("no-place", "record", "-o", "agent.py/x.tape", "agent.py").exit == 2


WEAK = """\
import contextlib, io, pathlib
from tracefork_core.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    for name in ("agent.tape", "gone.tape"):
        main(["show", name])  # What it imports may be somewhere that root alone may read.
pathlib.Path("agent.tape").chmod(0)
os.geteuid() or os.seteuid(65534)
"""


def test_an_unreadable_tape_is_reported_with_the_systems_reason(errs: Errs) -> None:
    """The mode of the file is 0, and the user is not root."""
    words = ["show", "agent.tape"]
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(errs.folder / "agent.tape", folder)
        errs.shell, errs.folder = errs.shell.at(folder), folder
        assert errs.told("no-permission", words, begun(errs, WEAK, *words)).exit == 5


@pytest.mark.parametrize("words", [["ls"], ["show", "agent.tape"], ["replay", "gone.tape"]])
def test_a_closed_pipe_causes_no_error_output(errs: Errs, words: list[str]) -> None:
    """As behind `| head -1`: neither tracefork nor Python complains."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tracefork_core.cli.main", *words]
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            command,
            cwd=errs.folder,
            env=errs.shell.full_environment(),
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert b"Broken" not in done.stderr
    assert done.returncode == (2 if "gone.tape" in words else 0)


def test_without_standard_input_blame_asks_for_yes(errs: Errs) -> None:
    """It behaves as without a terminal."""
    words = ["blame", "support.tape", "support.py", "--oracle=exit"]
    closed = "os.close(0); sys.stdin = None"
    assert errs.told("nobody-to-ask-at-all", words, begun(errs, closed, *words)).exit == 2


def test_a_narrow_screen_does_not_shorten_an_error(errs: Errs) -> None:
    """A sentence is one line at every width, and NO_COLOR is respected."""
    wide = errs("no-script", "record", "gone.py")
    assert errs.shell.tracefork("record", "gone.py", COLUMNS="20").err == wide.err
    assert errs.shell.tracefork("record", "gone.py", COLUMNS="none").err == wide.err
    assert errs.shell.tracefork("record", "gone.py", FORCE_COLOR="1").err == wide.err


def test_an_unwritable_folder_is_reported_with_the_systems_reason(errs: Errs) -> None:
    """`tracefork gc` cannot delete there."""
    with TemporaryDirectory() as place:
        folder = Path(place, "work")
        folder.mkdir()
        for name in ("left.tape", "left.tape-wal"):  # of a recording that was killed
            (folder / name).touch()
        folder.chmod(0o555)
        folder.parent.chmod(0o755)
        errs.shell, errs.folder = errs.shell.at(folder), folder
        begun_as = WEAK.replace("main([", 'main(["gc", "--dry-run"]); main([')
        begun_as = begun_as.replace('pathlib.Path("agent.tape").chmod(0)', "")
        assert errs.told("no-writing", ["gc"], begun(errs, begun_as, "gc")).exit == 5


def test_a_fork_on_a_full_disk_leaves_no_branch(errs: Errs) -> None:
    """The exit code is 5."""
    words = ["fork", "agent.tape", "agent.py", "--at", "1", "--allow-writes"]
    done = errs.told("no-disk-for-a-fork", words, begun(errs, FULL, *words))
    assert done.exit == 5
    assert not list(errs.folder.glob("agent.1*"))

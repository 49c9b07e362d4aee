"""Standard streams that are closed, full, or no longer read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Tape

from ..cli.conftest import Done
from .conftest import Errs

COMMAND = [sys.executable, "-m", "tracefork_core.cli.main"]


def run(errs: Errs, *words: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command with the given streams."""
    given = {"stderr": subprocess.PIPE, "env": errs.shell.full_environment(), **streams}
    done = subprocess.run([*COMMAND, *words], cwd=errs.folder, check=False, **given)
    assert b"Traceback" not in (done.stderr or b"")
    assert b"this is a bug" not in (done.stderr or b"")
    return done


def unread(errs: Errs, *words: str, **given: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command whose output is not read, as behind `| true`."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        return run(errs, *words, stdout=closed, **given)


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["ls"], 0),
        (["show", "agent.tape"], 0),
        (["replay", "gone.tape"], 2),
        (["verify", "--integrity", "agent.tape"], 0),
        (["verify", "--integrity", "damaged.tape"], 5),
        (["scan", "agent.tape", "--mask", "WORD"], 1),
    ],
)
def test_an_unread_command_keeps_its_exit_code(
    errs: Errs, words: list[str], more: list[str], code: int
) -> None:
    """A leak or a corrupt tape is still reported by the exit code, without a complaint."""
    damaged = bytearray((errs.folder / "agent.tape").read_bytes())
    damaged[-3000] ^= 1
    (errs.folder / "damaged.tape").write_bytes(damaged)
    environment = errs.shell.full_environment(WORD="gpt-5-mini")
    if "scan" in words:
        words = [*words[:1], "support.tape", *words[2:]]
    done = unread(errs, *words, *more, env=environment)
    assert b"Broken" not in done.stderr
    assert done.returncode == code, done.stderr
    read = errs.shell.tracefork(*words, *more, WORD="gpt-5-mini")
    assert read.exit == code, read.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "words", [["ls"], ["ls", "--json"], ["verify", "--integrity", "agent.tape"], ["doctor"]]
)
def test_an_unwritable_result_is_reported_on_stderr(errs: Errs, words: list[str]) -> None:
    """It is reported once, also with --json."""
    with Path("/dev/full").open("wb") as full:
        done = run(errs, *words, stdout=full)
    said = Done(done.returncode, "", done.stderr.decode())
    assert errs.told(f"full-{'-'.join(words[:2])}", words, said).exit == 5


@pytest.mark.parametrize("words", [["ls"], ["ls", "--json"], ["replay", "agent.tape", "agent.py"]])
@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_standard_stream_is_no_error(errs: Errs, words: list[str], closed: int) -> None:
    """As with `>&-`: what cannot be written is left out."""
    script = f'{" ".join(COMMAND)} "$@" {closed}>&-'
    environment = errs.shell.full_environment()
    done = subprocess.run(
        ["sh", "-c", script, "sh", *words],
        cwd=errs.folder,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


CLOSING = """\
import os, httpx2
httpx2.get(os.environ["PROVIDER"] + "/echo")
os.close(2)
httpx2.get(os.environ["PROVIDER"] + "/echo")
"""


def test_an_agent_that_closes_stderr_is_recorded_and_replayed(errs: Errs) -> None:
    """The messages of tracefork are lost then."""
    errs.shell.write("closing.py", CLOSING)
    assert run(errs, "record", "closing.py").returncode == 0
    assert run(errs, "replay", "closing.tape", "closing.py").returncode == 0
    with Tape.open(errs.folder / "closing.tape") as tape:
        assert len(tape.exchanges) == 2


@pytest.mark.parametrize("before", ["", "os.system('true'); "], ids=["", "and our door"])
def test_an_agent_that_closes_our_files_stops_the_recording(errs: Errs, before: str) -> None:
    """The agent continues. The error comes at its end, and the tape keeps what it has."""
    closing = f"{before}os.closerange(3, 256)"
    errs.shell.write("closing.py", CLOSING.replace("os.close(2)", closing))
    done = run(errs, "record", "closing.py")
    assert done.returncode == 5
    assert b"recording to " in done.stderr
    assert b"stopped: " in done.stderr
    with Tape.open(errs.folder / "closing.tape") as tape:
        assert len(tape.exchanges) == 1

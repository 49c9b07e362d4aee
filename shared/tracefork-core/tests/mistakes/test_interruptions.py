"""Ctrl-C at every stage, and SIGTERM: what was recorded is kept, and the output says so."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from tracefork_core import Tape

from ..cli.conftest import Done
from .conftest import Errs

AGENTS = {
    "running": "import time\nprint('ready', flush=True); time.sleep(60)\n",
    "waiting": """\
import os, sys, httpx2
with httpx2.Client(verify=False, timeout=60) as client:
    client.get(os.environ["PROVIDER"] + "/echo")
    print("ready", flush=True)
    client.get(os.environ["SILENT"])
""",
    "closing": """\
import time
from concurrent.futures import ThreadPoolExecutor, thread
def late():
    while not thread._shutdown:  # until the program has ended, and this is waited for
        time.sleep(0.01)
    print("ready", flush=True)
    time.sleep(60)
ThreadPoolExecutor().submit(late)
""",
}


def heeding() -> None:
    """Restore the default of Ctrl-C, which a shell turns off for programs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stopped(errs: Errs, *words: str, by: signal.Signals = signal.SIGINT) -> Done:
    """Run a command until its agent is ready, and send it a signal."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        running = subprocess.Popen(
            [sys.executable, "-m", "tracefork_core.cli.main", *words],
            cwd=errs.folder,
            env=errs.shell.full_environment(SILENT=place),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=heeding,  # noqa: PLW1509 - no other thread runs here
        )
        assert running.stdout is not None
        said = running.stdout.readline()
        assert said == "ready\n"
        if "waiting.py" in words:
            silent.accept()[0].detach()  # It stays open, and is never answered.
        running.send_signal(by)
        out, err = running.communicate(timeout=45)  # The agent would go on for a minute.
    return Done(running.returncode, said + out, err)


@pytest.mark.parametrize("stage", AGENTS)
def test_ctrl_c_leaves_a_complete_tape_of_the_recording(errs: Errs, stage: str) -> None:
    """The agent gets a KeyboardInterrupt, and the tape holds everything up to it."""
    errs.shell.write(f"{stage}.py", AGENTS[stage])
    words = ["record", f"{stage}.py"]
    assert errs.told(f"stopped-while-{stage}", words, stopped(errs, *words)).exit == 130
    with Tape.open(errs.folder / f"{stage}.tape") as tape:
        assert tape.receipt is not None
        assert tape.receipt.outcome == "KeyboardInterrupt"
        assert len(tape.exchanges) == (2 if stage == "waiting" else 0)


def test_ctrl_c_leaves_the_replayed_tape_unchanged(errs: Errs) -> None:
    """The exit code is 130: the replay proves nothing."""
    errs.shell.write("running.py", AGENTS["running"])
    words = ["replay", "agent.tape", "running.py"]
    before = (errs.folder / "agent.tape").read_bytes()
    assert errs.told("stopped-at-replay", words, stopped(errs, *words)).exit == 130
    assert (errs.folder / "agent.tape").read_bytes() == before


def test_sigterm_leaves_an_incomplete_tape_that_opens(errs: Errs) -> None:
    """SIGTERM ends the process at once, like any Python."""
    errs.shell.write("waiting.py", AGENTS["waiting"])
    done = stopped(errs, "record", "waiting.py", by=signal.SIGTERM)
    assert (done.exit, done.err) == (-signal.SIGTERM, "")
    assert errs("ended-from-outside", "verify", "--integrity", "waiting.tape").exit == 0
    with Tape.open(errs.folder / "waiting.tape") as tape:
        assert not tape.complete
        assert tape.exchanges[0].end == "eof"


READY = "import pathlib, time\npathlib.Path('ready').touch(); time.sleep(60)\n"
RUNS_IT = {
    "verify": ["agent.tape", "ready.py"],
    "calibrate": ["ready.py"],
    "race": ["agent.tape", "ready.py"],
    "bisect": ["agent.tape", "ready.py", "--oracle=exit"],
    "blame": ["agent.tape", "ready.py", "--oracle=exit", "--yes", "--stub-writes"],
}


LOADED_IN_A_WORKER = """\
import multiprocessing, pathlib, time

if multiprocessing.parent_process() is not None:
    pathlib.Path("ready").touch()
    time.sleep(1)

def good(outcome):
    return False
"""


def interrupted(errs: Errs, *words: str) -> Done:
    """Run a command, and press Ctrl-C once the file `ready` exists."""
    running = subprocess.Popen(
        [sys.executable, "-m", "tracefork_core.cli.main", *words],
        cwd=errs.folder,
        env=errs.shell.full_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,  # Ctrl-C goes to all that run in a terminal.
        preexec_fn=heeding,  # noqa: PLW1509 - no other thread runs here
    )
    for _ in range(450):
        if (errs.folder / "ready").exists() or running.poll() is not None:
            break
        time.sleep(0.1)
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=45)
    return Done(running.returncode, out, err)


@pytest.mark.parametrize("verb", RUNS_IT)
def test_json_reports_an_interrupted_command(errs: Errs, verb: str) -> None:
    """With --json there is one document, however a command ends."""
    errs.shell.write("ready.py", READY)
    done = interrupted(errs, verb, *RUNS_IT[verb], "--json")
    assert done.exit == 130, done
    named = done.document
    assert (named["command"], named["exit"], named["result"]) == (verb, 130, "interrupted")
    assert "Traceback" not in done.err


def test_ctrl_c_while_a_worker_starts_prints_no_traceback(errs: Errs) -> None:
    """The worker is still loading modules, and handles Ctrl-C once it has a job."""
    errs.shell.write("desk.py", "def run():\n    return 1\n")
    errs.shell.write("oracles.py", LOADED_IN_A_WORKER)
    words = ["--agent=desk:run", "--oracle=oracles:good", "--yes", "--stub-writes"]
    done = interrupted(errs, "blame", "agent.tape", *words)
    assert done.exit == 130, done
    assert (errs.folder / "ready").exists()
    assert "Traceback" not in done.err

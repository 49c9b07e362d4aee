"""A command that runs an agent in a child process gets its result."""

from __future__ import annotations

import os
import signal

import pytest

from tracefork_core.cli.agent import child_python

from .conftest import PLAIN_AGENT, Shell

pytestmark = pytest.mark.many_processes

LEAVING = """
import subprocess
left = subprocess.Popen(["sh", "-c", "sleep 60; touch over"], start_new_session=True)
with open("left", "a") as file:
    file.write(f"{left.pid}\\n")
"""


@pytest.mark.parametrize(
    "words",
    [
        ["verify", "agent.tape", "agent.py"],
        ["calibrate", "--no-live", "--tape=agent.tape", "agent.py"],
        ["race", "agent.tape", "agent.py"],
    ],
)
def test_a_program_that_is_left_behind_is_not_waited_for(taped: Shell, words: list[str]) -> None:
    """The command ends although a program that the agent started still runs."""
    taped.write("agent.py", PLAIN_AGENT + LEAVING)
    done = taped.tracefork(*words)
    over = (taped.folder / "over").exists()
    for number in (taped.folder / "left").read_text().split():
        os.killpg(int(number), signal.SIGKILL)
    assert (done.exit, over) == (0, False), done.err


def test_a_process_without_a_document_has_failed(shell: Shell) -> None:
    """Whatever its status, it is a failed replay with its last lines."""
    environment = shell.full_environment(PYTHONPATH=f"{shell.folder}:{shell.python_path}")
    for printed, status in (("", 0), ("7", 0), ("[]", 9)):
        text = f"import sys\nprint({printed!r})\nsys.stderr.write('gone wrong')\nsys.exit({status})"
        shell.write("broken.py", text)
        done = child_python.run(["broken"], shell.folder, environment)
        assert (done.exit, done.said, done.broke_off) == (3, ["gone wrong"], True)
        assert done.reason == f"the run ended without a result, with status {status}"


def test_the_reason_is_read_from_the_error_or_the_verdict(shell: Shell) -> None:
    """A good document has none."""
    environment = shell.full_environment(PYTHONPATH=f"{shell.folder}:{shell.python_path}")
    cases = {"{'error': {'message': 'm'}}": "m", "{'reason': 'r'}": "r", "{'reason': None}": ""}
    for document, reason in cases.items():
        shell.write("told.py", f"import json\nprint(json.dumps({document}))\nraise SystemExit(4)")
        done = child_python.run(["told"], shell.folder, environment)
        assert (done.exit, done.reason, done.broke_off) == (4, reason, False)

"""Commands that run an agent in a process of its own: what it leaves behind does not hold them."""

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
    """An agent that leaves a program behind: the command ends while that one still runs."""
    taped.write("agent.py", PLAIN_AGENT + LEAVING)
    done = taped.tracefork(*words)
    over = (taped.folder / "over").exists()
    for number in (taped.folder / "left").read_text().split():
        os.killpg(int(number), signal.SIGKILL)
    assert (done.exit, over) == (0, False), done.err


def test_what_prints_no_document_has_failed(shell: Shell) -> None:
    """Nothing, or JSON that is no object: a failed replay, whatever the status, with its end."""
    environment = shell.full_environment(PYTHONPATH=f"{shell.folder}:{shell.python_path}")
    for printed, status in (("", 0), ("7", 0), ("[]", 9)):
        text = f"import sys\nprint({printed!r})\nsys.stderr.write('gone wrong')\nsys.exit({status})"
        shell.write("broken.py", text)
        done = child_python.run(["broken"], shell.folder, environment)
        assert (done.exit, done.said, done.broke_off) == (3, ["gone wrong"], True)
        assert done.reason == f"the run ended without a result, with status {status}"


def test_a_reason_is_taken_from_where_it_stands(shell: Shell) -> None:
    """A document of an error has its message, one of a replay its reason, a good one neither."""
    environment = shell.full_environment(PYTHONPATH=f"{shell.folder}:{shell.python_path}")
    cases = {"{'error': {'message': 'm'}}": "m", "{'reason': 'r'}": "r", "{'reason': None}": ""}
    for document, reason in cases.items():
        shell.write("told.py", f"import json\nprint(json.dumps({document}))\nraise SystemExit(4)")
        done = child_python.run(["told"], shell.folder, environment)
        assert (done.exit, done.reason, done.broke_off) == (4, reason, False)

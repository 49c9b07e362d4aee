"""`tracefork proxy calibrate`: values that differ in each run of a program."""

from __future__ import annotations

import pytest

from ..cli.conftest import Shell
from .conftest import curl

pytestmark = pytest.mark.many_processes

VOLATILE = """\
curl -sS "$OPENAI_BASE_URL/chat/completions" -H "content-type: application/json" -d "{
  \\"model\\": \\"gpt-5-mini\\", \\"user\\": \\"$(cat /proc/sys/kernel/random/uuid)\\",
  \\"messages\\": [{\\"role\\": \\"user\\", \\"content\\": \\"@say one\\"}]}"
"""
COMMAND = ("--", "sh", "volatile.sh")


def test_a_volatile_value_is_named_with_the_option_that_leaves_it_out(shell: Shell) -> None:
    """The option that it names makes the replay of a recording pass."""
    shell.write("volatile.sh", VOLATILE)
    done = shell.tracefork("proxy", "calibrate", "--json", *COMMAND)
    assert done.exit == 1, done.err
    (finding,) = done.document["findings"]
    assert (finding["pointer"], finding["fix"]) == ("/user", "Replay with --ignore /user")
    shell.tracefork("proxy", "record", "run.tape", *COMMAND)
    strict = shell.tracefork("proxy", "replay", "run.tape", *COMMAND)
    assert strict.exit == 1
    assert "it comes from a program behind the proxy" in " ".join(strict.err.split())
    relaxed = shell.tracefork("proxy", "replay", "--ignore", "/user", "run.tape", *COMMAND)
    assert relaxed.exit == 0, relaxed.err


def test_a_program_that_repeats_itself_is_repeatable(shell: Shell) -> None:
    """Nothing differs, and both replays are proven."""
    done = shell.tracefork("proxy", "calibrate", "--json", *curl())
    assert (done.exit, done.document["findings"]) == (0, []), done.err
    assert done.document["proven"] == 2


def test_calibration_needs_a_command(shell: Shell) -> None:
    """A proxy without a command cannot be run again."""
    done = shell.tracefork("proxy", "calibrate")
    assert done.exit == 2
    assert "needs a command" in done.err

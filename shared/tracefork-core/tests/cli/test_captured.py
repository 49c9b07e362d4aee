"""A run of which nothing was captured proves nothing, and no command says that it does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core.errors import ReplayError
from tracefork_testkit import ProviderServer

from .conftest import Shell

OPENS = "import socket, sys\nsocket.create_connection(('127.0.0.1', int(sys.argv[1])), 5).close()\n"


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_a_program_that_ran_outside_is_no_proof(shell: Shell, command: str) -> None:
    """An SDK that starts a command line of its own: each replay asks the provider again."""
    shell.write("starts.py", "import subprocess\nsubprocess.run(['true'])\n")
    recorded = shell.tracefork("record", "starts.py")
    assert recorded.exit == 0
    assert "! nothing was captured: true ran outside" in recorded.err
    assert "next: tracefork doctor" in recorded.err
    done = shell.tracefork(command, "starts.tape")
    assert done.exit == 3
    assert "✓" not in done.out + done.err
    assert "true ran outside" in done.out + done.err


def test_there_is_nothing_to_calibrate_where_nothing_was_captured(shell: Shell) -> None:
    """Two live runs are equal in no exchange."""
    shell.write("starts.py", "import subprocess\nsubprocess.run(['true'])\n")
    done = shell.tracefork("calibrate", "starts.py")
    assert done.exit == 3
    assert "✗ nothing was captured, so there is nothing to calibrate: true ran outside" in done.err


def test_a_connection_past_the_seams_is_no_proof_even_where_it_is_allowed(
    shell: Shell, provider: ProviderServer
) -> None:
    """`--allow` lets it through; what came over it is still not on the tape."""
    port = provider.url.rpartition(":")[2].partition("/")[0]
    shell.write("opens.py", OPENS)
    shell.tracefork("record", "opens.py", "--", port)
    done = shell.tracefork("replay", "--allow", "127.0.0.1", "opens.tape", "opens.py", "--", port)
    assert done.exit == 3
    assert f"127.0.0.1:{port} ran outside" in done.err


def test_an_agent_that_makes_no_call_is_no_proof_and_no_failure(shell: Shell) -> None:
    """Nothing ran outside, and there is nothing to prove."""
    shell.write("says.py", "print('hello')\n")
    assert (
        "! nothing was captured: the agent made no call" in shell.tracefork("record", "says.py").err
    )
    for command in ("replay", "verify"):
        done = shell.tracefork(command, "says.tape")
        assert done.exit == 0
        assert "nothing to prove: the tape holds no exchange" in done.out + done.err
        assert "✓" not in done.out + done.err


def test_one_exchange_is_enough_to_prove_something(recorded: Shell) -> None:
    """The control: the same words are said of no other tape."""
    done = recorded.tracefork("replay", "support.tape", "support.py")
    assert done.exit == 0
    assert "✓ replayed 1 of 1 exchange bit-exact" in done.err


def test_python_raises_at_the_end_of_the_block(tmp_path: Path) -> None:
    """A test that replays such a tape must not pass."""

    def run() -> None:
        subprocess.run(["true"], check=True)

    with tracefork.record(tmp_path / "t.tape"):
        run()
    with (
        pytest.raises(ReplayError, match="true ran outside"),
        tracefork.replay(tmp_path / "t.tape"),
    ):
        run()

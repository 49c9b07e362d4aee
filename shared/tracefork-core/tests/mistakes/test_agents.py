"""Mistakes of agents: one that raises, a dead server, no key, doors that are closed."""

from __future__ import annotations

import socket
import textwrap

import pytest

from tracefork_core import Tape

from .conftest import Errs


def write(errs: Errs, text: str) -> None:
    errs.shell.write("mine.py", textwrap.dedent(text))


@pytest.mark.parametrize(
    ("name", "agent", "status"),
    [
        ("an-agent-that-raises", "raise ValueError('no order 17')", 1),
        ("an-agent-that-exits", "import sys; sys.exit('no order 17')", 1),
        ("a-library-that-is-missing", "import no_such_library", 1),
        ("a-missing-key", "import os; os.environ['NO_SUCH_KEY']", 1),
    ],
)
def test_an_agent_that_ends_badly(errs: Errs, name: str, agent: str, status: int) -> None:
    """Its own words, as Python has them; the tape is complete and says how it ended."""
    write(errs, agent)
    assert errs.runs(name, "record", "mine.py").exit == status
    with Tape.open(errs.folder / "mine.tape") as tape:
        assert tape.complete


def test_a_tape_is_overwritten_by_a_run_alone(errs: Errs) -> None:
    """Where there is no agent to run, what was to be replaced is there as before."""
    tape = errs.folder / "agent.tape"
    before, beside = tape.read_bytes(), sorted(errs.folder.iterdir())
    words = ["record", "--overwrite", "-o", "agent.tape", "-m", "json.nope"]
    assert errs("overwritten-by-nothing", *words).exit == 2
    assert (tape.read_bytes(), sorted(errs.folder.iterdir())) == (before, beside)
    write(errs, "pass")
    assert errs.shell.tracefork("record", "--overwrite", "-o", "agent.tape", "mine.py").exit == 0
    assert tape.read_bytes() != before


def test_a_dead_server(errs: Errs) -> None:
    """The error of the client is on the tape, and no frame of ours in its traceback."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # Nobody listens there, and nobody else will.
        write(
            errs,
            f"""\
            import httpx2
            with httpx2.Client(verify=False) as client:
                client.get("http://127.0.0.1:{held.getsockname()[1]}/echo")
            """,
        )
        assert errs.runs("a-dead-server", "record", "mine.py").exit == 1
    with Tape.open(errs.folder / "mine.tape") as tape:
        assert tape.exchanges[0].failure is not None


def test_a_port_in_use(errs: Errs) -> None:
    """What an agent cannot listen on is its own failure, and told as such."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        write(
            errs,
            f"""\
            import socket
            try:
                socket.create_server(("127.0.0.1", {taken.getsockname()[1]}))
            except OSError as error:
                raise SystemExit("the port is taken") from error
            """,
        )
        assert errs.runs("a-port-in-use", "record", "mine.py").exit == 1


@pytest.mark.parametrize(
    ("name", "words", "agent"),
    [
        ("a-door-that-no-seam-watches", "replay agent.tape mine.py", "connects"),
        ("a-connection-while-offline", "record --offline mine.py", "connects"),
        ("a-program-ruled-out", "record --no-subprocess mine.py", "starts"),
        ("a-program-ruled-out-at-replay", "replay --no-subprocess agent.tape mine.py", "starts"),
    ],
)
def test_a_door_that_is_closed(errs: Errs, name: str, words: str, agent: str) -> None:
    """It names the line of the agent, what it wanted, and what opens the door."""
    agents = {
        "connects": "import socket\nsocket.create_connection(('127.0.0.1', 9))\n",
        "starts": "import subprocess\nsubprocess.run(['true'])\n",
    }
    write(errs, agents[agent])
    assert errs.runs(name, *words.split()).exit == 4


def test_a_source_that_is_not_on_the_tape(errs: Errs) -> None:
    """With --boundary raise the line that draws past the tape is the last one."""
    write(errs, "import ssl\nssl.RAND_bytes(4)\nprint('drawn')\n")
    assert errs.runs("past-the-tape", "record", "--boundary=raise", "mine.py").exit == 7

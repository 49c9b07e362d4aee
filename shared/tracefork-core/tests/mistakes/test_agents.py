"""Agents that fail: one raises, one reaches a dead server, one has no key, one is refused."""

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
def test_a_failing_agent_shows_its_own_error(
    errs: Errs, name: str, agent: str, status: int
) -> None:
    """The tape is complete and holds the outcome."""
    write(errs, agent)
    assert errs.runs(name, "record", "mine.py").exit == status
    with Tape.open(errs.folder / "mine.tape") as tape:
        assert tape.complete


def test_overwrite_keeps_the_tape_if_there_is_no_agent_to_run(errs: Errs) -> None:
    """With an agent that runs, the tape is replaced."""
    tape = errs.folder / "agent.tape"
    before, beside = tape.read_bytes(), sorted(errs.folder.iterdir())
    words = ["record", "--overwrite", "-o", "agent.tape", "-m", "json.nope"]
    assert errs("overwritten-by-nothing", *words).exit == 2
    assert (tape.read_bytes(), sorted(errs.folder.iterdir())) == (before, beside)
    write(errs, "pass")
    assert errs.shell.tracefork("record", "--overwrite", "-o", "agent.tape", "mine.py").exit == 0
    assert tape.read_bytes() != before


def test_a_refused_connection_is_recorded_as_the_clients_error(errs: Errs) -> None:
    """The traceback has no frame of tracefork."""
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


def test_a_port_in_use_is_reported_as_the_agents_own_error(errs: Errs) -> None:
    """The agent cannot listen there with or without tracefork."""
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
def test_a_refused_connection_or_program_is_named_with_its_line(
    errs: Errs, name: str, words: str, agent: str
) -> None:
    """The message says what the agent tried and which option allows it."""
    agents = {
        "connects": "import socket\nsocket.create_connection(('127.0.0.1', 9))\n",
        "starts": "import subprocess\nsubprocess.run(['true'])\n",
    }
    write(errs, agents[agent])
    assert errs.runs(name, *words.split()).exit == 4


def test_boundary_raise_names_the_line_that_draws_past_the_tape(errs: Errs) -> None:
    """The error comes last, and the draw is prevented."""
    write(errs, "import ssl\nssl.RAND_bytes(4)\nprint('drawn')\n")
    assert errs.runs("past-the-tape", "record", "--boundary=raise", "mine.py").exit == 7

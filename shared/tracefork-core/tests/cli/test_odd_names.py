"""Names of tapes and arguments of agents are what a file system and a shell allow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracefork_core import Tape, record

from .conftest import Shell

NO_TEXT = os.fsdecode(b"caf\xe9")


def test_an_argument_need_not_be_unicode(shell: Shell) -> None:
    """It is remembered as it was, and replayed with."""
    shell.write("odd.py", "import os, sys\nprint(os.fsencode(sys.argv[1]))\n")
    for words in (("record", "odd.py", "--", NO_TEXT), ("replay", "last")):
        done = shell.tracefork(*words)
        assert (done.exit, done.out) == (0, f"{b'caf' + bytes([0xE9])!r}\n")


def test_the_name_of_a_tape_need_not_be_unicode(tmp_path: Path) -> None:
    """It is written and read there."""
    path = tmp_path / f"{NO_TEXT}.tape"
    with record(path):
        pass
    with Tape.open(path) as tape:
        assert tape.receipt is not None


@pytest.mark.parametrize("name", ["-x.tape", "--help"])
def test_what_looks_like_an_option_is_shown_as_a_path(name: str, shell: Shell) -> None:
    """What is to be typed next can be typed."""
    recorded = shell.tracefork("record", "-o", f"./{name}", "agent.py", "--json").document
    assert recorded["next"] == f"tracefork replay ./{name} agent.py"
    assert shell.tracefork(*recorded["next"].split()[1:]).exit == 0

"""Tapes and arguments may have any name that a file system and a shell allow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracefork_core import Tape, record

from .conftest import Shell

NO_TEXT = os.fsdecode(b"caf\xe9")
MEETS_NO_TEXT = """\
import os
import subprocess
import sys
name = os.environ["ODD"]
import httpx2

print(httpx2.post(os.environ["PROVIDER"] + "/echo", content=b"one").text)
here = os.path.dirname(os.path.abspath(__file__))
print(subprocess.check_output([os.path.join(here, "caf\\udce9.sh"), name]))
print(subprocess.check_output([sys.executable, os.path.join(here, "child-caf\\udce9.py")]))
"""
ASKS_THE_TIME = """\
import os
import time

import httpx2

asked = str(time.time()).encode()
print(httpx2.post(os.environ["PROVIDER"] + "/echo", content=asked).text)
"""


def test_an_argument_need_not_be_unicode(shell: Shell) -> None:
    """It is stored and passed on unchanged."""
    shell.write("odd.py", "import os, sys\nprint(os.fsencode(sys.argv[1]))\n")
    for words in (("record", "odd.py", "--", NO_TEXT), ("replay", "last")):
        done = shell.tracefork(*words)
        assert (done.exit, done.out) == (0, f"{b'caf' + bytes([0xE9])!r}\n")


def test_the_name_of_a_tape_need_not_be_unicode(tmp_path: Path) -> None:
    """The tape can be written and read."""
    path = tmp_path / f"{NO_TEXT}.tape"
    with record(path):
        pass
    with Tape.open(path) as tape:
        assert tape.receipt is not None


def test_names_variables_and_programs_of_an_agent_need_not_be_unicode(shell: Shell) -> None:
    """A script in a child process is included."""
    shell.write(f"{NO_TEXT}.py", MEETS_NO_TEXT)
    shell.write(f"child-{NO_TEXT}.py", shell.write("agent.py", ASKS_THE_TIME).read_text())
    program = shell.write(f"{NO_TEXT}.sh", "#!/bin/sh\necho $1\n")
    program.chmod(0o755)
    recorded = shell.tracefork("record", "-o", "odd.tape", f"{NO_TEXT}.py", ODD=NO_TEXT)
    assert recorded.exit == 0, recorded.err
    assert "1 subprocess: caf\\udce9.sh" in recorded.err
    again = shell.tracefork("replay", "odd.tape", ODD=NO_TEXT)
    assert (again.exit, again.out) == (0, recorded.out), again.err
    assert "no recorded value" not in again.err  # The child's lane has the same name again.
    other = shell.tracefork("replay", "odd.tape", "--json", ODD="text").document
    assert other["differences"] == [
        "ODD was 'caf\\\\udce9' when this was recorded and is 'text' now (caf\\udce9.py:4)"
    ]
    assert " caf\\udce9.py:7 " in shell.tracefork("show", "odd.tape").out


def test_a_race_is_run_whatever_the_name_of_a_tape_is(shell: Shell) -> None:
    """The name is passed from process to process."""
    shell.tracefork("record", "-o", f"{NO_TEXT}.tape", "agent.py")
    done = shell.tracefork("race", f"{NO_TEXT}.tape")
    assert (done.exit, done.err) == (0, "")
    assert "nothing overlaps in 2 exchanges" in done.out


@pytest.mark.parametrize(
    "words",
    [
        ("fork", "--at", "1", "--text", "x"),
        ("try", "--at", "1"),
        ("blame", "--oracle", "regex:x", "--yes"),
        ("bisect", "--oracle", "regex:x"),
    ],
    ids=lambda words: words[0],
)
def test_a_tape_whose_name_is_not_unicode_cannot_be_forked(
    words: tuple[str, ...], shell: Shell
) -> None:
    """A branch must store the name; the error comes before any request and any file."""
    shell.tracefork("record", "-o", f"{NO_TEXT}.tape", "agent.py")
    before = {*shell.folder.iterdir()}
    done = shell.tracefork(words[0], f"{NO_TEXT}.tape", *words[1:])
    assert (done.exit, done.err.count("\n")) == (2, 1)
    assert "caf\\udce9.tape" in done.err
    assert {*shell.folder.iterdir()} == before


def test_a_long_name_breaks_no_line(shell: Shell) -> None:
    """The output can be searched by line, for instance in a CI log."""
    name = f"{'long-' * 20}name.tape"
    said = shell.tracefork("record", "-o", name, "agent.py").err.splitlines()
    assert said[0].startswith(f"● recorded {name} · 2 exchanges · 1 lane · ")
    assert [line.split()[0] for line in said[1:]] == ["digest", "captured", "next:"]
    forked = shell.tracefork("fork", "--at", "1", "--text", "x", name).err.splitlines()
    assert forked[0].endswith(" s")
    assert "1 replayed · 1 given · 0 live" in forked[0]
    for words in (("show", name), ("verify", name), ("verify", "--integrity", name)):
        head = shell.tracefork(*words).out.splitlines()[0]
        assert name in head
        assert head.count(" · ") >= 1
        assert not head.endswith((" ", "·"))


@pytest.mark.parametrize("name", ["-x.tape", "--help.tape"])
def test_a_name_that_looks_like_an_option_is_shown_as_a_path(name: str, shell: Shell) -> None:
    """The suggested command can be pasted."""
    recorded = shell.tracefork("record", "-o", f"./{name}", "agent.py", "--json").document
    assert recorded["next"] == f"tracefork replay ./{name} agent.py"
    assert shell.tracefork(*recorded["next"].split()[1:]).exit == 0

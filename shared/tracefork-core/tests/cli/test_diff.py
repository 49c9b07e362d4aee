"""`tracefork diff` and `show --against` compare runs on the command line."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from .conftest import Shell
from .test_fork import AGENT, ok

pytestmark = pytest.mark.many_processes


@pytest.fixture
def two(shell: Shell) -> Shell:
    """Return a shell with a run, a second recording of it, and a branch of it."""
    shell.write("agent.py", AGENT)
    ok(shell.tracefork("record", "agent.py"))
    ok(shell.tracefork("record", "-o", "again", "agent.py"))
    forked = ok(shell.tracefork("fork", "agent.tape", "--at=1", "--text=Nobody."))
    assert "next: tracefork diff agent.1.tape · tracefork tree agent.1.tape" in forked.err
    return shell


def test_two_recordings_of_one_agent_are_the_same(two: Shell) -> None:
    """The provider gave other ids and times. Everything counts with --strict."""
    done = ok(two.tracefork("diff", "agent", "again"))
    assert done.out.startswith("agent.tape ↔ again.tape · no difference\n")
    assert "3 exchanges the same" in done.out
    assert two.tracefork("diff", "agent", "again", "--strict", "--stat").exit == 1


def test_a_branch_is_compared_with_its_parent(two: Shell) -> None:
    """The first difference is the fork; what follows from it is said in counts."""
    done = two.tracefork("diff", "agent.1.tape")
    assert done.exit == 1
    head = "agent.tape ↔ agent.1.tape · first difference at exchange 1"
    assert done.out.splitlines()[0] == head
    assert "#1 output differs · chat · " in done.out
    assert "{+Nobody+}" in done.out
    found = two.tracefork("diff", "agent.1.tape", "--json").document
    assert found["exit"] == 1
    assert (found["findings"][0]["kind"], found["findings"][0]["place"]) == ("output differs", 1)
    assert [run["exchanges"] for run in found["runs"]] == [3, 3]
    assert ok(two.tracefork("diff", "agent", "agent")).exit == 0


def test_one_difference_is_shown_in_full(two: Shell) -> None:
    """A number at which nothing differs is refused, with the command that lists what does."""
    at = two.tracefork("diff", "agent", "agent.1.tape", "--at", "1")
    assert at.exit == 1
    assert at.out.count("#1 ") == 1
    refused = two.tracefork("diff", "agent.1.tape", "--at", "0")
    assert refused.exit == 2
    assert "nothing differs at exchange 0" in refused.err
    assert "`tracefork diff agent.1.tape`" in refused.err.replace("\n", " ")


def test_a_report_for_a_pull_request(two: Shell) -> None:
    """What a model wrote can close no block of it."""
    ok(two.tracefork("fork", "agent.tape", "--at=2", "--text=```\n# <b>owned</b>"))
    done = two.tracefork("diff", "agent.2.tape", "--markdown")
    assert done.exit == 1
    assert "### agent.tape ↔ agent.2.tape: first difference at exchange 2" in done.out
    assert "````diff" in done.out
    assert "+ # <b>owned</b>" in done.out
    assert two.tracefork("diff", "agent.2.tape", "--markdown", "--json").exit == 2


def test_only_a_branch_is_compared_alone(two: Shell) -> None:
    """The error says what to type."""
    done = two.tracefork("diff", "agent.tape")
    assert done.exit == 2
    assert "agent.tape is not a branch" in done.err
    assert two.tracefork("diff", "gone.tape", "agent.tape").exit == 2


def test_what_a_model_was_told_is_compared(two: Shell) -> None:
    """Of one run, and of two. Without a second number it is the same one."""
    done = two.tracefork("show", "agent", "1", "--against", "0")
    assert done.exit == 1
    assert done.out.splitlines()[0] == "agent.tape #1 ↔ agent.tape #0 · 2 differences"
    assert "dropped · history · message 1" in done.out
    assert ok(two.tracefork("show", "agent", "1", "--against", "again", "1")).exit == 0
    found = two.tracefork("show", "agent", "2", "--against", "agent.1.tape", "--json")
    assert [one["how"] for one in found.document["differences"]] == ["changed"]
    for words in (["--against", "0"], ["1", "2"], ["1", "--against", "9"]):
        assert two.tracefork("show", "agent", *words).exit == 2


def test_git_compares_tapes_as_text(two: Shell) -> None:
    """A new recording of the same run changes nothing; another answer changes its line."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
            cwd=two.folder,
            env=two.full_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    git("init", "-q", ".")
    two.write(".gitattributes", "*.tape diff=tracefork\n")
    shown = f"{shlex.quote(sys.executable)} -m tracefork_core show --text"
    git("config", "diff.tracefork.textconv", shown)
    git("add", "agent.tape")
    git("commit", "-qm", "tape")
    (two.folder / "again.tape").replace(two.folder / "agent.tape")
    assert git("diff", "--stat"), "git sees another file"
    assert not git("diff", "--unified=0").splitlines()[4:]
    two.edit("agent.py", "Who delivers it?", "Who has it?")
    ok(two.tracefork("record", "agent.py", "-o", "agent.tape", "--overwrite"))
    assert "+  prompt: Who has it?" in git("diff", "--unified=0").splitlines()
    compare = f'{shlex.quote(sys.executable)} -m tracefork_core diff "$LOCAL" "$REMOTE"'
    git("config", "difftool.tracefork.cmd", compare)
    assert "{+has+}" in git("difftool", "--no-prompt", "--tool=tracefork")

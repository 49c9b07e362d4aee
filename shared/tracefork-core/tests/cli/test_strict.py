"""What a verdict covers: the exit status always, and lanes and order with `--strict`."""

from __future__ import annotations

import pytest

from .conftest import PLAIN_AGENT, Shell

THREADS = """\
import os
import threading

import httpx2

http = httpx2.Client(verify=False, base_url=os.environ["PROVIDER"])


def look(word):
    http.post("/echo", content=word)


def ask(word):
    http.post("/echo", content=word)


for work, word in [(look, "one"), (ask, "two")]:
    thread = threading.Thread(target=work, args=(word,))
    thread.start()
    thread.join()
"""
SWAPPED = ('(look, "one"), (ask, "two")', '(ask, "one"), (look, "two")')
SENTENCE = (
    "exchange 0 ran in another thread or task than when it was recorded: main/ask.1 now, "
    "main/look.1 then"
)


@pytest.fixture
def moved(shell: Shell) -> Shell:
    """Record an agent whose threads then swap their work."""
    shell.write("agent.py", THREADS)
    assert shell.tracefork("record", "-o", "run.tape", "agent.py").exit == 0
    unchanged = shell.tracefork("verify", "--strict", "run.tape")
    assert unchanged.exit == 0, unchanged.err
    shell.edit("agent.py", *SWAPPED)
    return shell


def test_strict_refuses_an_exchange_that_ran_in_another_thread(moved: Shell) -> None:
    """Without it, the replay is proven and a line says that."""
    lenient = moved.tracefork("replay", "run.tape")
    assert lenient.exit == 0
    assert "bit-exact" in lenient.err
    assert f"! {SENTENCE} (and 1 more); --strict refuses that" in lenient.err
    strict = moved.tracefork("replay", "--strict", "run.tape")
    assert strict.exit == 1
    assert SENTENCE in " ".join(strict.err.split())
    assert moved.tracefork("replay", "--json", "run.tape").document["moved"][0] == SENTENCE
    proof = moved.tracefork("verify", "--strict", "run.tape")
    assert proof.exit == 1
    assert SENTENCE in " ".join(proof.out.split())


def test_a_renamed_function_is_the_same_lane(moved: Shell) -> None:
    """The structure is compared: what started a thread, and as which of its children."""
    moved.edit("agent.py", *reversed(SWAPPED))
    text = (moved.folder / "agent.py").read_text()
    moved.write("agent.py", text.replace("look", "search"))
    assert moved.tracefork("replay", "--strict", "run.tape").exit == 0


def test_strict_cannot_be_combined_with_another_order(moved: Shell) -> None:
    """One compares the order that the other changes."""
    done = moved.tracefork("replay", "--strict", "--order", "7", "run.tape")
    assert done.exit == 2
    assert "Use one of them" in done.err


@pytest.mark.parametrize(
    ("recorded", "now", "reason"),
    [
        ("sys.exit(3)", "sys.exit(4)", "the agent exited with 4, and with 3 when it was recorded"),
        ("sys.exit(3)", "os._exit(4)", "the agent exited with 4, and with 3 when it was recorded"),
        ("sys.exit(3)", "sys.exit('no')", "exited with 1, and with 3 when it was recorded"),
        ("sys.exit(3)", "", "the agent succeeded, but ended with SystemExit"),
    ],
)
def test_another_exit_status_is_a_difference(
    shell: Shell, recorded: str, now: str, reason: str
) -> None:
    """The agent said something else about its run."""
    shell.write("agent.py", f"{PLAIN_AGENT}\n{recorded}\n# the end\n")
    shell.tracefork("record", "-o", "run.tape", "agent.py")
    ended = shell.tracefork("replay", "run.tape", "agent.py")
    assert ended.exit == 0, ended.err
    shell.edit("agent.py", f"\n{recorded}\n# the end", f"\n{now}\n# the end")
    done = shell.tracefork("replay", "run.tape", "agent.py")
    assert done.exit == 1
    assert reason in done.err
    assert shell.tracefork("replay", "--strict", "run.tape", "agent.py").exit == 1

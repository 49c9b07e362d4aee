"""`tracefork view --allow-run`: what the page may start, and what a person confirms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from .conftest import Shell
from .viewer import Viewer, events

WRITER = """\
import os
import httpx2
import tracefork_core as tracefork

@tracefork.tool(effect="write")
def refund(order: int) -> str:
    with open("refunds.log", "a") as log:
        log.write("refunded\\n")
    return "done"

httpx2.post(os.environ["PROVIDER"] + "/echo", content=b"first")
refund(17)
httpx2.post(os.environ["PROVIDER"] + "/echo", content=b"last")
"""
SLEEPER = """\
import os, time
import httpx2

httpx2.post(os.environ["PROVIDER"] + "/echo", content=b"first")
if os.path.exists("slow"):
    print("sleeping", flush=True)
    time.sleep(100)
"""


@pytest.fixture
def running(shell: Shell) -> Iterator[Viewer]:
    """Return a server that may run agents, with one whose tool writes and one that may sleep."""
    shell.write("writer.py", WRITER)
    shell.write("sleeper.py", SLEEPER)
    for name in ("writer.py", "sleeper.py"):
        assert shell.tracefork("record", name).exit == 0
    found = Viewer(shell, "--allow-run")
    found.enter()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def asked(recorded: Shell) -> Iterator[Viewer]:
    """Return a server that may run agents, which starts none."""
    found = Viewer(recorded, "--allow-run")
    found.enter()
    yield found
    found.stop()


def post(viewer: Viewer, path: str, document: object) -> httpx2.Response:
    """Send a document as the page does."""
    return viewer.client.post(path, json=document, headers={"origin": viewer.url})


def offered(viewer: Viewer, **wish: object) -> tuple[str, dict[str, Any]]:
    """Return the key of an offer and what it shows."""
    answer = post(viewer, "/api/offer", wish)
    assert answer.status_code == 200, answer.text
    return answer.json()["offer"], answer.json()["shown"]


def ended(viewer: Viewer, offer: str) -> tuple[int, str]:
    """Start an offer, and return the exit code and the output of the command."""
    job = post(viewer, "/api/start", {"offer": offer}).json()["job"]
    lines: list[str] = []
    with viewer.client.stream("GET", "/api/job", params={"job": job}) as response:
        for _, state in events(response):
            lines += state["lines"]
            if state["exit"] is not None:
                return state["exit"], "\n".join(lines)
    raise AssertionError(lines)


def refunds(shell: Shell) -> int:
    return len((shell.folder / "refunds.log").read_text().splitlines())


def test_an_offer_says_what_it_does_and_starts_nothing(shell: Shell, running: Viewer) -> None:
    """The command, its folder, what it costs and what it would do again."""
    _, shown = offered(running, verb="fork", tape="writer.tape", at=0, change="text", value="'; ls")
    assert shown["command"] == """tracefork fork writer.tape --at=0 '--text='"'"'; ls'"""
    assert (shown["folder"], shown["agent"]) == (str(shell.folder), "writer.py")
    assert "no limit" in shown["ceiling"]
    (effect,) = shown["effects"]
    assert "exchange 1, refund" in effect
    assert "the run stops before such a call" in effect
    assert refunds(shell) == 1
    assert not list(shell.folder.glob("writer.*.tape"))


def test_a_confirmed_fork_runs_once_and_repeats_no_write(shell: Shell, running: Viewer) -> None:
    """An offer is taken up once. With the tool allowed, and only then, it runs again."""
    offer, _ = offered(running, verb="fork", tape="writer.tape", at=0)
    code, output = ended(running, offer)
    assert "stopped before" in output
    assert refunds(shell) == 1
    assert post(running, "/api/start", {"offer": offer}).status_code == 400
    offer, shown = offered(running, verb="fork", tape="writer.tape", at=0, writes="allow")
    assert "IS MADE AGAIN" in shown["effects"][0]
    code, output = ended(running, offer)
    assert (code, refunds(shell)) == (0, 2), output
    assert "● forked" in output


def test_a_command_can_be_cancelled(shell: Shell, running: Viewer) -> None:
    """One runs at a time, and what it printed so far is there."""
    (shell.folder / "slow").touch()
    offer, _ = offered(running, verb="rerun", tape="sleeper.tape")
    other, _ = offered(running, verb="rerun", tape="writer.tape")
    job = post(running, "/api/start", {"offer": offer}).json()["job"]
    with running.client.stream("GET", "/api/job", params={"job": job}) as response:
        told = events(response)
        assert any("sleeping" in line for _, state in told for line in state["lines"])
        refused = post(running, "/api/start", {"offer": other})
        assert refused.status_code == 400
        assert "is still running" in refused.text
        assert post(running, "/api/cancel", {"job": job}).status_code == 200
        assert next(state["exit"] for _, state in told if state["exit"] is not None) != 0


WISHES: tuple[tuple[object, str], ...] = (
    ({"verb": "record", "tape": "plain.tape"}, "Invalid enum value"),
    ({"verb": "fork", "tape": "../plain.tape", "at": 0}, "no tape"),
    ({"verb": "fork", "tape": "plain.tape", "at": 9}, "has no exchange 9"),
    ({"verb": "fork", "tape": "plain.tape", "at": 0, "change": "to", "value": "/etc"}, "changes"),
    ({"verb": "rerun", "tape": "plain.tape", "change": "text", "value": "x"}, "changes nothing"),
    ({"verb": "blame", "tape": "plain.tape", "oracle": "exit"}, "a budget"),
    ({"verb": "fork", "tape": "plain.tape", "at": 0, "shell": "ls"}, "unknown field"),
    ({"verb": "fork", "tape": "plain.tape", "at": 0, "value": "x" * 200_000}, "at most"),
    ([], "Expected"),
)


@pytest.mark.parametrize(("wish", "why"), WISHES)
def test_other_wishes_are_refused(asked: Viewer, wish: object, why: str) -> None:
    """With the reason. Nothing but the four verbs and their own values makes a command."""
    answer = post(asked, "/api/offer", wish)
    assert answer.status_code == 400
    assert why in answer.text


def test_a_stranger_s_tape_runs_nothing(shell: Shell, running: Viewer) -> None:
    """The command of a tape is known on the machine that recorded it, and is on no tape."""
    (shell.folder / "copy.tape").write_bytes((shell.folder / "writer.tape").read_bytes())
    answer = post(running, "/api/offer", {"verb": "rerun", "tape": "copy.tape"})
    assert answer.status_code == 400
    assert "not recorded on this machine" in answer.text


def test_without_the_option_nothing_can_be_started(recorded: Shell) -> None:
    """The routes are not there."""
    viewer = Viewer(recorded)
    viewer.enter()
    for path in ("/api/offer", "/api/start", "/api/cancel"):
        assert post(viewer, path, {}).status_code == 404
    viewer.stop()

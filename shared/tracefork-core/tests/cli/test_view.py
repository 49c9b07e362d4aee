"""`tracefork view`: a folder and its runs, while they are recorded."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import PLAIN_AGENT, Shell, copied
from .pages import Read
from .viewer import COLUMNS, Growing, Viewer, events, held_server, recording

PAIR = """\
import os, threading, urllib.request
import httpx2

def ask(path, word):
    return httpx2.post(os.environ["HELD"] + path, content=word.encode()).text

held = threading.Thread(target=ask, args=("/held", "first"))
held.start()
import time
while not os.path.exists("begun"):
    time.sleep(0.01)
for word in ("a", "b", "c"):
    ask("/echo", word)
held.join()
"""


@pytest.fixture
def viewing(shell: Shell) -> Iterator[Viewer]:
    """Return a server for an empty folder."""
    found = Viewer(shell, ".")
    found.enter()
    yield found
    found.stop()


def entries(viewer: Viewer) -> Iterator[dict[str, Any]]:
    """Yield the list of the folder after each event."""
    listed: dict[str, Any] = {}
    with viewer.client.stream("GET", "/api/folder") as response:
        for _, data in events(response):
            listed |= {entry["name"]: entry for entry in data["entries"]}
            for name in data["gone"]:
                del listed[name]
            yield listed


def test_the_list_keeps_itself_current(shell: Shell, viewing: Viewer) -> None:
    """Tapes come, are read, and go. A damaged one is named with the reason."""
    following = entries(viewing)
    assert next(following) == {}
    assert shell.tracefork("record", "agent.py").exit == 0
    (shell.folder / "bad.tape").write_bytes(b"no tape")
    listed = next(found for found in following if len(found) == 2 and all_read(found))
    entry = listed["agent.tape"]
    assert (entry["state"], entry["exchanges"], entry["outcome"]) == ("complete", 2, "ok")
    assert listed["bad.tape"]["state"] == "damaged"
    assert "not a tape" in listed["bad.tape"]["problem"]
    (shell.folder / "bad.tape").unlink()
    assert next(found for found in following if "bad.tape" not in found)


def all_read(found: dict[str, Any]) -> bool:
    """Return whether each entry is read to its end."""
    return all(entry["state"] not in ("", "open") for entry in found.values())


def test_rows_come_while_the_run_is_recorded(shell: Shell, viewing: Viewer) -> None:
    """The agent goes on when its rows were seen; an answer that is late holds back no other."""
    shell.write("pair.py", PAIR)
    with held_server() as (url, released):
        recorder = recording(shell, "pair.py", HELD=url)
        next(found for found in entries(viewing) if "pair.tape" in found)
        with viewing.run("pair.tape") as first, viewing.run("pair.tape") as second:
            first.until(lambda run: run.rows() == 1)
            assert first.growths[0]["in_flight"] == 1
            (shell.folder / "begun").touch()
            for run in (first, second):
                run.until(lambda run: run.rows() == 4 and run.growths[0]["in_flight"] == 1)
                assert run.growths[0]["open"]
                assert run.growths[0]["run"]["finding"]["line"].startswith("The recording has not")
            released.set()
            for run in (first, second):
                run.until(lambda run: not run.growths[0]["open"])
            assert recorder.wait(30) == 0
            report = shell.tracefork("report", "pair.tape")
            assert report.exit == 0, report.err
            same_as_report(first, shell, "pair.html")
            same_as_report(second, shell, "pair.html")
            assert_parts(viewing, first)


def same_as_report(run: Growing, shell: Shell, page: str, number: int = 0) -> None:
    """Check that the rows that came in are those of the report of the finished tape."""
    read = Read(shell.folder / page)
    whole = read.report["runs"][number]
    index = read.part(whole["index"])
    assert {name: run.indices[number][name] for name in COLUMNS} == {
        name: index[name] for name in COLUMNS
    }
    assert run.indices[number]["steps"] == index["steps"]
    told = run.growths[number]["run"]
    for name in ("exchanges", "outcome", "finding", "totals", "lanes", "facts", "branch", "parent"):
        assert told[name] == whole[name], name


def assert_parts(viewer: Viewer, run: Growing, number: int = 0) -> None:
    """Check that each block that a run names can be fetched; the control is one it does not."""
    tape = run.names[number]
    for _, key in run.growths[number]["run"]["blocks"]:
        answer = viewer.client.get("/api/part", params={"tape": tape, "id": key})
        assert answer.status_code == 200
        assert answer.text
    for key in ("p99", "t0-0-9", "", "p-1", "p²"):
        gone = viewer.client.get("/api/part", params={"tape": tape, "id": key})
        assert gone.status_code == 410, key


def test_a_finished_run_comes_with_its_branches(shell: Shell, viewing: Viewer) -> None:
    """They are what the report of the tape shows; a branch that is made later comes in too."""
    assert shell.tracefork("record", "agent.py").exit == 0
    with viewing.run("agent.tape") as run:
        run.until(lambda run: run.rows() == 2)
        done = shell.tracefork("fork", "agent.tape", "--at", "1", "--replace", "agent.py")
        assert done.exit == 0, done.err
        run.until(lambda run: 1 in run.growths and run.growths[1]["run"]["branch"] is not None)
    assert shell.tracefork("report", "agent.tape").exit == 0
    same_as_report(run, shell, "agent.html")
    same_as_report(run, shell, "agent.html", 1)


def test_two_runs_are_compared(shell: Shell, viewing: Viewer) -> None:
    """They come side by side, with the differences that `tracefork diff` finds."""
    for name, words in {"a.tape": ("one", "two"), "b.tape": ("one", "three")}.items():
        assert shell.tracefork("record", "-o", name, "agent.py", "--", *words).exit == 0
    with viewing.run("a.tape", **{"with": "b.tape"}) as run:
        run.until(lambda run: run.compared is not None)
        assert run.names == ["a.tape", "b.tape"]
    assert run.compared is not None
    assert run.compared["number"] == 1
    assert run.compared["branch"]["cells"] == ["SAME", "DIFFERS"]
    (found,) = run.compared["branch"]["findings"]
    diff = shell.tracefork("diff", "a.tape", "b.tape", "--json").document
    assert found["kind"] == diff["findings"][0]["kind"]
    missing = viewing.client.get("/api/run", params={"tape": "a.tape", "with": "../b.tape"})
    assert missing.status_code == 404


def test_a_killed_recording_stays_readable(shell: Shell, viewing: Viewer) -> None:
    """Its rows are there, and the page does not say that it ended."""
    shell.write("pair.py", PAIR)
    (shell.folder / "begun").touch()
    with held_server() as (url, _):
        recorder = recording(shell, "pair.py", HELD=url)
        next(found for found in entries(viewing) if "pair.tape" in found)
        with viewing.run("pair.tape") as run:
            run.until(lambda run: run.rows() == 4)
            recorder.send_signal(signal.SIGKILL)
            recorder.wait(30)
    with viewing.run("pair.tape") as later:
        later.until(lambda run: run.rows() == 4)
    assert later.growths[0]["open"]
    assert later.growths[0]["run"]["outcome"] == {"ok": False, "words": "not ended"}
    assert later.indices[0] == run.indices[0]


def test_a_tape_that_is_recorded_again_begins_anew(shell: Shell, viewing: Viewer) -> None:
    """No row of the old one stays."""
    assert shell.tracefork("record", "agent.py", "--", "old", "older").exit == 0
    with viewing.run("agent.tape") as run:
        run.until(lambda run: run.rows() == 2)
        again = shell.tracefork(
            "record", "--overwrite", "-o", "agent.tape", "agent.py", "--", "new"
        )
        assert again.exit == 0, again.err
        run.until(lambda run: run.rows() == 1 and not run.growths[0]["open"])
        assert run.indices[0]["gist"] == ["POST /echo 200 · 3 B → 3 B"]


def test_a_damaged_tape_says_why(recorded: Shell, shell: Shell, viewing: Viewer) -> None:
    """The page shows the reason instead of rows."""
    copied(recorded.folder, shell)
    path = shell.folder / "plain.tape"
    data = bytearray(path.read_bytes())
    data[-900:] = bytes(900)
    path.write_bytes(data)
    with viewing.run("plain.tape") as run:
        run.until(lambda run: 0 in run.growths)
    assert "corrupt" in run.growths[0]["problem"]
    assert run.rows() == 0


def test_ctrl_c_ends_it_while_somebody_looks(shell: Shell) -> None:
    """With exit code 0, and not a word of the server's own."""
    shell.write("agent.py", PLAIN_AGENT)
    assert shell.tracefork("record", "agent.py").exit == 0
    viewer = Viewer(shell, "agent.tape")
    assert viewer.address.startswith(f"{viewer.url}/run?tape=agent.tape&token=")
    viewer.enter()
    with viewer.run("agent.tape") as run:
        run.until(lambda run: run.rows() == 2)
        viewer.process.send_signal(signal.SIGINT)
        _, said = viewer.process.communicate(timeout=30)
    assert (viewer.process.returncode, said) == (0, "")


def test_a_port_that_is_taken_is_named(shell: Shell) -> None:
    """The alias is a name of the same command."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for name in ("view", "serve"):
            done = shell.tracefork(name, "--port", str(port))
            assert done.exit == 2
            assert f"port {port} of 127.0.0.1 cannot be used" in done.err


def test_without_the_extra_one_line_says_what_to_install(shell: Shell) -> None:
    """The libraries are an extra: the other commands need none of them."""
    shell.write("starlette.py", "raise ImportError('No module named starlette')")
    code = "import sys; sys.modules['uvicorn'] = None; import tracefork_core.cli.main as m; "
    done = shell.python("-c", code + "sys.exit(m.main(['view', '--json']))")
    assert done.exit == 2
    assert "pip install 'tracefork-core[view]'" in json.loads(done.out)["error"]["message"]

"""`tracefork replay --mode`: what runs again, what is compared, and which evidence is written."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from tracefork_testkit import ProviderServer

from .conftest import Shell, copied

MENDER = """\
import os, pathlib, subprocess, sys
import httpx2
import tracefork_core as tracefork

@tracefork.tool(effect="write")
def edit(text: str) -> str:
    pathlib.Path("app.py").write_text(text)
    with open("edits.log", "a") as log:
        log.write("edited\\n")
    return "written"

@tracefork.tool(verifier=True)
def run_tests() -> dict:
    done = subprocess.run([sys.executable, "app.py"], capture_output=True, text=True)
    with open("runs.log", "a") as log:
        log.write("ran\\n")
    return {"exit_code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}

def ask(text):
    return httpx2.post(os.environ["PROVIDER"] + "/echo", content=text.encode()).text

ask("mend it")
edit("raise ValueError('line %d' % 7)\\n")
print(ask(str(run_tests()["exit_code"])))
"""


@pytest.fixture(scope="session")
def a_mended_file(tmp_path_factory: pytest.TempPathFactory, provider: ProviderServer) -> Shell:
    """Return a shell with an agent that edited a file and ran its tests, which failed."""
    folder, home = tmp_path_factory.mktemp("mended"), tmp_path_factory.mktemp("home")
    found = Shell(folder, {"PROVIDER": provider.url, "TRACEFORK_HOME": str(home)})
    found.write("agent.py", MENDER)
    done = found.tracefork("record", "agent.py")
    assert done.exit == 0, done.err
    return found


@pytest.fixture
def mended(shell: Shell, a_mended_file: Shell) -> Shell:
    """Return a shell in a copy of that folder."""
    return copied(a_mended_file.folder, shell)


def lines(shell: Shell, name: str) -> int:
    return len((shell.folder / name).read_text().splitlines())


def test_a_verifier_runs_again_and_nothing_else(mended: Shell) -> None:
    """The file is as the run left it, so that the check fails the same way."""
    done = mended.tracefork("replay", "--mode", "hybrid", "agent.tape", "agent.py")
    assert done.exit == 0, done.err
    assert "✓ run_tests (exchange 2): failed with exit 1 then, failed with exit 1 now" in done.err
    assert (lines(mended, "edits.log"), lines(mended, "runs.log")) == (1, 2)


def test_a_check_that_ends_another_way_fails(mended: Shell) -> None:
    """The exit code and the signature are compared: another exception is another failure."""
    (mended.folder / "app.py").write_text("print('fine')\n")
    done = mended.tracefork("replay", "--mode", "hybrid", "agent.tape", "agent.py")
    assert done.exit == 1
    assert "failed with exit 1 then, passed with exit 0 now: different" in done.err
    (mended.folder / "app.py").write_text("raise KeyError('x')\n")
    document = mended.tracefork(
        "replay", "--mode", "hybrid", "--json", "agent.tape", "agent.py"
    ).document
    (one,) = document["verifications"]
    assert one["verdict"] == "different"
    assert one["recorded"]["exit_code"] == one["now"][0]["exit_code"] == 1


def test_the_signature_leaves_out_what_differs_between_runs(mended: Shell) -> None:
    """Another line number is the same failure."""
    (mended.folder / "app.py").write_text("\n\nraise ValueError('line 7')\n")
    assert mended.tracefork("replay", "--mode", "hybrid", "agent.tape", "agent.py").exit == 0


def test_a_flaky_check_is_told_from_another_failure(mended: Shell) -> None:
    """It fails every other time, so that no single run says what it is."""
    flaky = """\
import pathlib
count = pathlib.Path("count")
n = int(count.read_text()) if count.exists() else 0
count.write_text(str(n + 1))
if n % 2:
    raise ValueError("line 7")
"""
    (mended.folder / "app.py").write_text(flaky)
    words = ("--mode", "hybrid", "--runs", "4", "agent.tape", "agent.py")
    done = mended.tracefork("replay", *words)
    assert done.exit == 1
    assert "passed 2 of 4 runs now: flaky" in done.err


def test_a_strict_replay_runs_no_tool_and_says_so(mended: Shell) -> None:
    """What it cannot prove stands below the verdict."""
    done = mended.tracefork("replay", "--mode", "strict", "agent.tape", "agent.py")
    assert done.exit == 0
    assert "mode strict: 2 tool calls, none of them live" in done.err
    assert "not proven: no tool ran" in done.err
    assert lines(mended, "runs.log") == 1


def test_a_verifier_by_name_that_may_write_is_refused(mended: Shell) -> None:
    """Until it is allowed by its name; then it writes again."""
    words = ("replay", "--mode", "hybrid", "--verifier", "edit")
    done = mended.tracefork(*words, "agent.tape", "agent.py")
    assert "! edit was not run, because it may write: --allow-write edit" in done.err
    assert lines(mended, "edits.log") == 1
    mended.tracefork(*words, "--allow-write", "edit", "agent.tape", "agent.py")
    assert lines(mended, "edits.log") == 2


def test_a_hybrid_replay_without_a_verifier_proves_nothing(taped: Shell) -> None:
    """It would be a strict one; and options of hybrid are refused in other modes."""
    done = taped.tracefork("replay", "--mode", "hybrid", "agent.tape", "agent.py")
    assert done.exit == 3
    assert "no verifier ran" in done.err
    done = taped.tracefork("replay", "--verifier", "x", "agent.tape", "agent.py")
    assert (done.exit, "is an option of --mode hybrid" in done.err) == (2, True)


def test_another_lockfile_is_refused(shell: Shell) -> None:
    """The nearest lockfile and the Python are the recorded ones, unless the user accepts others."""
    shell.write("agent.py", MENDER)
    shell.write("uv.lock", "one")
    shell.tracefork("record", "agent.py")
    shell.write("uv.lock", "two")
    done = shell.tracefork("replay", "--mode", "hybrid", "agent.tape", "agent.py")
    assert done.exit == 2
    assert "uv.lock has changed" in done.err
    done = shell.tracefork("replay", "--mode", "hybrid", "--unpinned", "agent.tape", "agent.py")
    assert done.exit == 0
    assert "! accepted: uv.lock has changed" in done.err


def test_a_verifier_runs_under_the_command_of_a_container(shell: Shell) -> None:
    """The function is imported there, and called with its recorded arguments."""
    shell.write("checks.py", CHECKS)
    shell.write("agent.py", CHECKED)
    assert shell.tracefork("record", "agent.py").exit == 0
    path = f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ("replay", "--mode", "hybrid", "--container")
    done = shell.tracefork(*words, f"env {path} WHERE=inside", "agent.tape", "agent.py")
    assert done.exit == 0, done.err
    assert (shell.folder / "where.log").read_text() == "outside inside "
    done = shell.tracefork(*words, "false", "agent.tape", "agent.py")
    assert done.exit == 3
    assert "left no result" in done.err


def test_a_verifier_of_a_script_runs_in_no_container(mended: Shell) -> None:
    """To import it would run the agent, with all of its side effects."""
    words = ("replay", "--mode", "hybrid", "--container", "env A=b", "agent.tape", "agent.py")
    done = mended.tracefork(*words)
    assert done.exit == 2
    assert "Move it to the top of a module of its own" in done.err
    assert lines(mended, "edits.log") == 1


CHECKS = """\
import os
import tracefork_core as tracefork

@tracefork.tool(verifier=True)
def check(name: str) -> str:
    with open("where.log", "a") as log:
        log.write(os.environ.get("WHERE", "outside") + " ")
    return f"checked {name}"
"""
CHECKED = """\
import os
import httpx2
from checks import check
httpx2.post(os.environ["PROVIDER"] + "/echo", content=check("all").encode())
"""
CONNECTING = """\
import os, subprocess
import httpx2
import tracefork_core as tracefork

@tracefork.tool(verifier=True)
def check() -> int:
    host, port = os.environ["PROVIDER"].removeprefix("http://").split(":")
    ask = r"printf 'GET /spy HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
    return subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/{host}/{port}; {ask}"]).returncode

httpx2.post(os.environ["PROVIDER"] + "/echo", content=b"one")
check()
"""


def test_a_verifier_has_no_network(shell: Shell, provider: ProviderServer) -> None:
    """Nor has a program that it starts: the kernel keeps it closed."""
    shell.write("agent.py", CONNECTING)

    def spied() -> int:
        return sum(request.path == "/spy" for request in provider.requests)

    before = spied()
    assert shell.tracefork("record", "agent.py").exit == 0
    assert spied() == before + 1
    shell.python("-m", "tracefork_core", "replay", "--mode", "hybrid", "agent.tape", "agent.py")
    assert spied() == before + 1


def test_a_dry_run_runs_nothing(mended: Shell) -> None:
    """Not even the agent: its script may be gone."""
    (mended.folder / "agent.py").unlink()
    done = mended.tracefork("replay", "--mode", "dry-run", "agent.tape")
    assert done.exit == 0, done.err
    assert "✓ agent.tape adds up · 4 exchanges · nothing ran" in done.out
    assert "not proven: nothing ran" in done.out
    document = mended.tracefork("replay", "--mode", "dry-run", "--json", "agent.tape").document
    tools = [action for action in document["actions"] if action["kind"] == "tool"]
    assert [action["tool"] for action in tools] == ["edit", "run_tests"]
    assert tools[0]["side_effects"]["files"][0]["path"] == "app.py"
    assert tools[1]["result"] == {
        "status": "error",
        "exit_code": 1,
        "error": tools[1]["result"]["error"],
        "signature": tools[1]["result"]["signature"],
    }
    assert tools[1]["side_effects"]["unseen"] == ["subprocess python"]


def test_a_dry_run_finds_a_tape_that_was_changed(mended: Shell) -> None:
    """One bit near the end of the file is enough."""
    data = bytearray((mended.folder / "agent.tape").read_bytes())
    data[-40] ^= 1
    (mended.folder / "agent.tape").write_bytes(data)
    assert mended.tracefork("replay", "--mode", "dry-run", "agent.tape").exit == 5


def test_a_bundle_is_the_same_each_time(mended: Shell, tmp_path: Path) -> None:
    """Its manifest has the hash of each file, and the folder is never overwritten."""
    for name in ("one", "two"):
        done = mended.tracefork(
            "replay", "--mode", "dry-run", "--bundle", str(tmp_path / name), "agent.tape"
        )
        assert done.exit == 0, done.err
    files = {file.name: file.read_bytes() for file in (tmp_path / "one").iterdir()}
    assert files == {file.name: file.read_bytes() for file in (tmp_path / "two").iterdir()}
    manifest = json.loads(files["manifest.json"])
    for name, sha in manifest["files"].items():
        assert hashlib.sha256(files[name]).hexdigest() == sha
    assert b'"tool":"edit"' in files["actions.jsonl"]
    again = ("replay", "--mode", "dry-run", "--bundle", str(tmp_path / "one"), "agent.tape")
    done = mended.tracefork(*again)
    assert (done.exit, "is not an empty folder" in done.err) == (2, True)


def test_an_exchange_shows_what_its_tool_changed(mended: Shell) -> None:
    """The files by their paths, and what could not be seen."""
    assert "changed      app.py, edits.log" in mended.tracefork("show", "agent.tape", "1").out
    shown = mended.tracefork("show", "agent.tape", "2").out
    assert "changed      runs.log (not seen: subprocess python" in shown

"""`tracefork ci`: a folder of tapes that must replay."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tracefork_testkit import ProviderServer

from .conftest import Shell

COUNTS = """\
import os, sys
import httpx2, counting
counting.calls.append(sys.argv[1])
httpx2.post(os.environ["PROVIDER"] + "/echo", content=repr(counting.calls).encode())
"""
OUTSIDE = json.dumps(
    {
        "version": 1,
        "tapes": {
            "../x.tape": {
                "form": "script",
                "target": "a.py",
                "folder": ".",
                "digest": "",
                "exchanges": 1,
            }
        },
    }
)
CONNECTS = """\
import os, subprocess
import httpx2
host, port = os.environ["PROVIDER"].removeprefix("http://").split(":")
httpx2.post(os.environ["PROVIDER"] + "/echo", content=b"one")
ask = r"printf 'GET /spy HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
connect = f"exec 3<>/dev/tcp/{host}/{port}; {ask}"
print(subprocess.run(["bash", "-c", connect], stdout=subprocess.DEVNULL).returncode)
"""


def test_a_folder_of_tapes_passes(gated: Shell) -> None:
    """Each tape is replayed whole, and its line says so."""
    done = gated.tracefork("ci", "check")
    assert done.exit == 0, done.out + done.err
    assert "✓ agent.tape · 2 of 2 exchanges bit-exact · 0 sockets" in done.out
    assert "✓ support.tape · 1 of 1 exchange bit-exact · 0 sockets" in done.out
    assert "✓ 2 tapes: 2 passed" in done.out
    document = gated.tracefork("ci", "check", "--json").document
    assert document["verdict"] == "pass"
    assert [one["verdict"] for one in document["tapes"]] == ["pass", "pass"]


def test_an_edited_agent_fails_with_its_card(gated: Shell) -> None:
    """The card names the place in the request, and the next command is about that tape."""
    gated.edit("support.py", "Be brief.", "Be kind.")
    done = gated.tracefork("ci", "check")
    assert done.exit == 1
    assert "✗ support.tape" in done.out
    assert "/messages/0/content" in done.out
    assert "next: tracefork ci replay support.tape tapes" in done.out
    assert gated.tracefork("ci", "check", "--only", "agent").exit == 0


def test_a_call_that_is_not_made_fails(gated: Shell) -> None:
    """A recorded call that the agent no longer makes is a difference, too."""
    gated.edit("agent.py", '["one", "two"]', '["one"]')
    document = gated.tracefork("ci", "check", "--json").document
    failed = document["tapes"][0]
    assert (failed["verdict"], failed["exchanges"], failed["of"]) == ("fail", 1, 2)
    assert document["exit"] == failed["exit"] != 0


def test_the_manifest_works_in_another_folder(gated: Shell, tmp_path: Path) -> None:
    """A clone has other paths, another home, and no store of commands."""
    clone = tmp_path / "clone"
    subprocess.run(["cp", "-r", str(gated.folder), str(clone)], check=True)
    other = gated.at(clone)
    done = other.tracefork("ci", "check", TRACEFORK_HOME=str(tmp_path / "none"))
    assert done.exit == 0, done.out
    other.edit("agent.py", '"two"', '"three"')
    assert other.tracefork("ci", "check").exit == 1
    assert gated.tracefork("ci", "check").exit == 0


def test_state_of_one_replay_does_not_reach_the_next(shell: Shell) -> None:
    """The workers load libraries once, and the modules of an agent for each replay."""
    shell.write("counting.py", "calls = []\n")
    shell.write("agent.py", COUNTS)
    for i in range(4):
        assert shell.tracefork("ci", "record", "--name", f"n{i}", "agent.py", "--", "x").exit == 0
    done = shell.tracefork("ci", "check", "-n", "1")
    assert done.exit == 0, done.out
    shell.write("counting.py", "calls = ['before']\n")
    assert shell.tracefork("ci", "check", "-n", "1").exit == 1


def test_no_program_reaches_the_network(shell: Shell, provider: ProviderServer) -> None:
    """A program that is not Python has none either. The control is a replay outside of a check."""
    shell.write("agent.py", CONNECTS)

    def spied() -> int:
        return sum(request.path == "/spy" for request in provider.requests)

    before = spied()
    assert shell.tracefork("ci", "record", "agent.py").exit == 0
    assert spied() == before + 1
    document = shell.tracefork("ci", "check", "--json").document
    assert document["closed_by"] == "kernel"
    assert spied() == before + 1
    shell.tracefork("ci", "replay", "agent")
    assert spied() == before + 2


def test_a_script_that_makes_no_call_is_not_added(shell: Shell) -> None:
    """The folder stays empty, and the error says what to type."""
    shell.write("agent.py", "print('hello')\n")
    done = shell.tracefork("ci", "record", "agent.py")
    assert done.exit == 3
    assert "made no call" in done.err
    assert not list((shell.folder / "tapes").iterdir())


@pytest.mark.parametrize("manifest", [None, '{"tapes":{},"version":1}'])
def test_an_empty_baseline_fails(shell: Shell, manifest: str | None) -> None:
    """No manifest and a manifest without tapes prove nothing."""
    (shell.folder / "tapes").mkdir()
    if manifest:
        shell.write("tapes/tracefork-ci.json", manifest)
    done = shell.tracefork("ci", "check")
    assert done.exit == 125
    assert "nothing to check" in done.out
    assert "next: tracefork ci record" in done.out


def test_orphans_missing_and_changed_tapes_are_found(gated: Shell) -> None:
    """A tape that was moved away is missing here and an orphan there."""
    tapes = gated.folder / "tapes"
    (tapes / "agent.tape").rename(tapes / "old.tape")
    gated.tracefork("record", "-o", "tapes/support.tape", "--overwrite", "agent.py")
    done = gated.tracefork("ci", "check")
    assert done.exit == 2
    assert "✗ agent.tape · the tape is missing" in done.out
    assert "✗ support.tape · the tape has digest" in done.out
    assert "! old.tape is in no entry of the manifest" in done.out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("not json", "is not a manifest"),
        ('{"version": 9}', "reads up to version 1"),
        (OUTSIDE, "the name of a file in the same folder"),
        (OUTSIDE.replace("../x", "x").replace("a.py", "\\u0000"), "has a null character"),
    ],
)
def test_a_hostile_manifest_is_refused(shell: Shell, text: str, expected: str) -> None:
    """One error says what is wrong with the file."""
    shell.write("tapes/tracefork-ci.json", text)
    done = shell.tracefork("ci", "check")
    assert done.exit == 5
    assert expected in done.err


def test_what_was_recorded_again_is_reported(gated: Shell) -> None:
    """Without an agent, all tapes of the manifest are recorded again."""
    done = gated.tracefork("ci", "record")
    assert done.exit == 0
    assert "agent.tape · recorded again, the same · 2 exchanges" in done.err
    gated.edit("agent.py", '"two"', '"three"')
    done = gated.tracefork("ci", "record", "--only", "agent")
    assert "agent.tape · recorded again, other content" in done.err
    assert gated.tracefork("ci", "check").exit == 0


def test_recordings_at_the_same_time_lose_no_entry(shell: Shell) -> None:
    """Six processes write the same manifest."""
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        names = [f"n{i}" for i in range(6)]
        done = list(
            pool.map(
                lambda name: shell.python(
                    "-m", "tracefork_core", "ci", "record", "--name", name, "agent.py"
                ),
                names,
            )
        )
    assert [one.exit for one in done] == [0] * 6
    manifest = json.loads((shell.folder / "tapes/tracefork-ci.json").read_text())
    assert sorted(manifest["tapes"]) == [f"{name}.tape" for name in names]


def test_git_bisect_finds_the_commit_and_skips_a_broken_one(gated: Shell) -> None:
    """One commit cannot be imported, a later one changes the prompt."""

    def git(*words: str) -> str:
        settings = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", *settings, *words]
        done = subprocess.run(
            command,
            cwd=gated.folder,
            env=gated.full_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    git("init", "-q")

    def commit(name: str) -> str:
        git("add", "-A")
        git("commit", "-qm", name)
        return git("rev-parse", "HEAD").strip()

    good = commit("good")
    gated.edit("support.py", "import openai", "import openai, no_such_module")
    commit("broken")
    gated.edit("support.py", "import openai, no_such_module", "import openai")
    for i in range(2):
        gated.write("notes.txt", str(i))
        commit(f"note {i}")
    gated.edit("support.py", "Be brief.", "Be kind.")
    culprit = commit("prompt")
    gated.write("notes.txt", "last")
    commit("last")
    git("bisect", "start", "HEAD", good)
    python = __import__("sys").executable
    said = git("bisect", "run", python, "-m", "tracefork_core", "ci", "check")
    assert f"{culprit} is the first bad commit" in said, said


def test_an_agent_that_cannot_be_imported_is_undecided(gated: Shell) -> None:
    """So is one whose script is gone; the other tape still passes."""
    gated.edit("support.py", "import openai", "import openai, no_such_module")
    done = gated.tracefork("ci", "check")
    assert done.exit == 125
    assert "? support.tape · undecided" in done.out
    (gated.folder / "support.py").unlink()
    assert gated.tracefork("ci", "check").exit == 125
    assert gated.tracefork("ci", "check", "--only", "agent").exit == 0


def test_a_corpus_is_replayed_bit_for_bit(shell: Shell) -> None:
    """`replay --check FOLDER` also fails a replay that is equal only by its matchers."""
    shell.write("agent.py", JSON_AGENT)
    assert shell.tracefork("ci", "record", "--match", "json", "agent.py").exit == 0
    assert shell.tracefork("replay", "--check", "tapes").exit == 0
    shell.edit("agent.py", '{"a": 1, "b": 2}', '{"b": 2, "a": 1}')
    assert "✓ agent.tape · 1 of 1 exchange alike" in shell.tracefork("ci", "check").out
    done = shell.tracefork("replay", "--check", "tapes")
    assert done.exit == 1
    assert "but not bit for bit" in done.out
    assert shell.tracefork("replay", "--check", "tapes", "agent.py").exit == 2


JSON_AGENT = """\
import os
import httpx2
httpx2.post(os.environ["PROVIDER"] + "/echo", json={"a": 1, "b": 2})
"""

"""What `tracefork ci` says to GitHub, to CI servers and in pull requests."""

from __future__ import annotations

import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tracefork_testkit import ProviderServer

from .conftest import Shell

HOSTILE = "]]>\n::error::owned\x1b[31m|`</td><script>%0A"
MANY = """\
import os
import openai
client = openai.OpenAI(base_url=os.environ["PROVIDER"] + "/v1", api_key="sk-none")
history = [{"role": "system", "content": "You are a desk of travel agents. " * 12}]
for n in range(100):
    question = f"Question {n}: which train goes to city {n * 7}, and at what time does it leave?"
    history.append({"role": "user", "content": question})
    answer = client.chat.completions.create(model="gpt-5-mini", messages=history)
    history.append({"role": "assistant", "content": answer.choices[0].message.content})
"""


def test_a_failure_is_an_annotation_at_its_line(gated: Shell) -> None:
    """The line is that of the call, in the agent's file; the summary goes where GitHub reads it."""
    gated.edit("support.py", "Be brief.", "Be kind.")
    summary = gated.folder / "step.md"
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    done = gated.tracefork("ci", "check", **github)
    assert done.exit == 1
    line = next(line for line in done.out.splitlines() if line.startswith("::"))
    assert line.startswith("::error file=support.py,line=9,title=support.tape%3A fail::")
    assert "/messages/0/content" in line
    text = summary.read_text()
    assert text.startswith("### ✗ 2 tapes: 1 passed, 1 failed")
    assert "| ✗ | support.tape |" in text
    assert "::" not in gated.tracefork("ci", "check").out


def test_junit_lists_each_tape(gated: Shell) -> None:
    """A failure has its card, and an undecided tape was skipped."""
    gated.edit("support.py", "import openai", "import openai, no_such_module")
    gated.edit("agent.py", '"two"', '"three"')
    gated.tracefork("ci", "check", "--junit", "junit.xml")
    suite = ET.fromstring((gated.folder / "junit.xml").read_bytes())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "1")
    failure = suite.find(".//testcase[@name='agent.tape']/failure")
    assert failure is not None
    assert "recorded" in (failure.text or "")
    assert suite.find(".//testcase[@name='support.tape']/skipped") is not None


def test_hostile_texts_stay_texts(shell: Shell) -> None:
    """What an agent sends is no command of GitHub, no markup, and legal in XML."""
    shell.write("agent.py", f"TEXT = {'x'!r}\n" + AGENT)
    assert shell.tracefork("ci", "record", "agent.py").exit == 0
    shell.write("agent.py", f"TEXT = {HOSTILE!r}\n" + AGENT)
    done = shell.tracefork("ci", "check", "--annotations", "--junit", "j.xml", "--summary", "s.md")
    commands = [line for line in done.out.splitlines() if line.startswith("::")]
    assert len(commands) == 1
    assert commands[0].startswith("::error ")
    assert "::error::owned" in commands[0]  # In the message, where it is no command.
    text = (shell.folder / "j.xml").read_text()
    assert "\x1b" not in text + (shell.folder / "s.md").read_text()
    assert ET.fromstring(text).find(".//failure") is not None
    table = [line for line in (shell.folder / "s.md").read_text().splitlines() if line[:1] == "|"]
    assert "<script>" not in "".join(table)


AGENT = """\
import json, os
import httpx2
httpx2.post(os.environ["PROVIDER"] + "/echo", json={"text": TEXT})
"""


def test_the_text_of_a_tape_is_the_same_for_an_equal_recording(gated: Shell) -> None:
    """Clock and ids of the second recording are others."""
    done = gated.tracefork("ci", "normalize")
    assert done.exit == 0
    assert "● tapes/support.txt · new" in done.out
    before = (gated.folder / "tapes/support.txt").read_bytes()
    gated.tracefork("ci", "record", "--only", "support")
    assert gated.tracefork("ci", "normalize", "--check").exit == 0
    gated.tracefork("ci", "normalize")
    assert (gated.folder / "tapes/support.txt").read_bytes() == before


def test_the_text_of_a_changed_tape_differs_in_that_line(gated: Shell) -> None:
    """One line goes, and one comes."""
    gated.tracefork("ci", "normalize")
    gated.edit("support.py", "Be brief.", "Be kind.")
    gated.tracefork("ci", "record", "--only", "support")
    done = gated.tracefork("ci", "normalize", "--check", "--json")
    assert done.exit == 1
    (changed,) = (file for file in done.document["files"] if file["changed"])
    lines = [
        line
        for line in changed["difference"]
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert [line[:1] for line in lines] == ["-", "+"]
    assert "Be kind." in lines[1]


def test_a_hundred_exchanges_are_small_as_text(shell: Shell) -> None:
    """The history that each question sends again stands in the text once."""
    shell.write("agent.py", MANY)
    assert shell.tracefork("ci", "record", "agent.py").exit == 0
    (file,) = shell.tracefork("ci", "normalize", "--json").document["files"]
    assert file["bytes"] <= 40_000


def test_what_changed_since_a_commit_is_listed(gated: Shell) -> None:
    """By the kinds of differences, as text, Markdown and JSON."""

    def git(*words: str) -> None:
        settings = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *settings, *words], cwd=gated.folder, check=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "tapes")
    done = gated.tracefork("ci", "diff")
    assert done.exit == 0
    assert "HEAD ↔ tapes · 2 tapes: 2 same" in done.out
    gated.edit("support.py", "Be brief.", "Be kind.")
    gated.tracefork("ci", "record", "--only", "support")
    (gated.folder / "tapes/agent.tape").rename(gated.folder / "tapes/other.tape")
    done = gated.tracefork("ci", "diff")
    assert done.exit == 1
    assert "+ other.tape · not in the baseline" in done.out
    assert "- agent.tape · only in the baseline" in done.out
    assert "✗ support.tape · first at exchange 0 · 1 other question" in done.out
    assert "Be kind." in gated.tracefork("ci", "diff", "--markdown").out
    kinds = gated.tracefork("ci", "diff", "--json").document["tapes"][2]["kinds"]
    assert kinds == {"input differs": 1}


def test_a_baseline_that_is_nothing_is_an_error(gated: Shell, tmp_path: Path) -> None:
    """An empty folder is a baseline without tapes."""
    done = gated.tracefork("ci", "diff", "--against", "no-such-thing")
    assert done.exit == 2
    assert "is neither a folder nor a commit" in done.err
    (tmp_path / "empty").mkdir()
    done = gated.tracefork("ci", "diff", "--against", str(tmp_path / "empty"))
    assert "+ support.tape · not in the baseline" in done.out


FLAKY = """\
import os, pathlib
import httpx2
count = pathlib.Path("count")
runs = int(count.read_text()) if count.exists() else 0
count.write_text(str(runs + 1))
httpx2.post(os.environ["PROVIDER"] + "/echo", content=b"one")
raise SystemExit(1 if str(runs) in os.environ.get("FAILS", "").split() else 0)
"""


@pytest.mark.parametrize(
    ("runs", "fails", "verdict", "words"),
    [
        ("9", "", "pass", "live runs: 50% or more"),
        ("1", "", "undecided", "more live runs that pass"),
        ("9", "2 3 4 5 6 7 8 9", "fail", "less than 50%"),
    ],
)
def test_live_runs_pass_fail_or_are_undecided(
    shell: Shell, runs: str, fails: str, verdict: str, words: str
) -> None:
    """After each run it is asked whether the rate is known."""
    shell.write("agent.py", FLAKY)
    assert shell.tracefork("ci", "record", "agent.py").exit == 0
    live = ("--rerun", runs, "--pass-rate", "0.5")
    document = shell.tracefork("ci", "check", *live, "--json", FAILS=fails).document
    (one,) = document["tapes"]
    assert one["verdict"] == verdict
    assert words in f"{one['reason']} {one['missing']} {one['live']}"


def test_a_model_that_does_not_answer_is_undecided(shell: Shell) -> None:
    """The replay needs no model; a live run that reaches none says nothing about the agent."""
    with ProviderServer() as provider:
        gone = provider.url
        assert shell.tracefork("ci", "record", "agent.py", PROVIDER=gone).exit == 0
    assert shell.tracefork("ci", "check", PROVIDER=gone).exit == 0
    done = shell.tracefork("ci", "check", "--rerun", "2", PROVIDER=gone)
    assert done.exit == 125
    assert "missing: a model that answers" in done.out


def test_a_failed_live_run_is_blamed_within_its_budget(shell: Shell) -> None:
    """What the blame says stands beside the rate; a budget that is too small says so."""
    shell.write("agent.py", FLAKY)
    assert shell.tracefork("ci", "record", "agent.py").exit == 0
    words = ("--rerun", "9", "--pass-rate", "0.5", "--blame-budget", "3 calls", "--json")
    (one,) = shell.tracefork("ci", "check", *words, FAILS="2 3 4 5 6 7 8 9").document["tapes"]
    assert one["verdict"] == "fail"
    assert "less than 50%; " in one["reason"]
    done = shell.tracefork("ci", "check", "--blame-budget", "3 calls")
    assert (done.exit, "Give --rerun N" in done.err) == (2, True)

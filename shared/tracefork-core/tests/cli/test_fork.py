"""`tracefork fork`, `try` and `tree` change a run and compare the results."""

from __future__ import annotations

import json

import pytest

from .conftest import Done, Shell

pytestmark = pytest.mark.many_processes

AGENT = """\
import os

import httpx2

client = httpx2.Client(base_url=os.environ["PROVIDER"] + "/v1")
messages = []
for question in ("Where is order 17?", "Who delivers it?", "Thank them."):
    messages.append({"role": "user", "content": question})
    asked = {"model": "gpt-5-mini", "messages": messages}
    answer = client.post("/chat/completions", json=asked).json()
    said = answer["choices"][0]["message"]["content"]
    messages.append({"role": "assistant", "content": said})
    print(said)
"""


@pytest.fixture
def support(shell: Shell) -> Shell:
    """Return a shell with a recorded agent."""
    shell.write("agent.py", AGENT)
    assert shell.tracefork("record", "agent.py").exit == 0
    return shell


def ok(done: Done) -> Done:
    assert done.exit == 0, done.err
    return done


def test_a_fork_is_a_branch_that_replays(support: Shell) -> None:
    """One answer is replaced and the rest is live; the tree shows the run and its branches."""
    done = ok(support.tracefork("fork", "agent.tape", "--at=1", "--text=Nobody."))
    assert done.out.splitlines()[1] == "Nobody."
    assert "● forked agent.1.tape at 1 · 1 replayed · 1 given · 1 live" in done.err
    assert ok(support.tracefork("replay", "agent.1.tape")).out == done.out
    ok(support.tracefork("fork", "agent.1.tape", "--at=2", "--model=gpt-5", "--json"))
    tree = ok(support.tracefork("tree", "agent.1.2.tape", COLUMNS="120")).out.strip()
    assert [line.split("·")[1].strip() for line in tree.splitlines()[1:]] == [
        "replace 1: text 'Nobody.'",
        "edit 2: model 'gpt-5'; and from there on",
    ]
    root = ok(support.tracefork("tree", "--json", "agent.tape")).document["root"]
    (child,) = root["branches"]
    assert (child["tape"], child["at"], child["live"]) == ("agent.1.tape", 1, 1)


def test_a_question_is_tried_with_another_model(support: Shell) -> None:
    """Both answers are shown, one call is made, and no file remains."""
    before = sorted(support.folder.rglob("*"))
    done = ok(support.tracefork("try", "agent.tape", "--at=1", "--model=other", "--json"))
    told = done.document
    assert (told["recorded"]["model"], told["now"]["model"]) == ("gpt-5-mini", "other")
    assert told["now"]["answer"]
    assert sorted(support.folder.rglob("*")) == before
    assert "other" in ok(support.tracefork("try", "agent.tape", "--at=1", "--model=other")).out


def test_replace_reads_an_answer_from_a_file(support: Shell) -> None:
    """The file must be valid JSON."""
    body = support.tracefork("show", "agent.tape", "1", "--raw").out
    document = json.loads(body)
    document["choices"][0]["message"]["content"] = "From a file."
    support.write("answer.json", json.dumps(document))
    done = ok(support.tracefork("fork", "agent.tape", "--at=1", "--replace=answer.json"))
    assert done.out.splitlines()[1] == "From a file."
    support.write("answer.json", "{")
    broken = support.tracefork("fork", "agent.tape", "--at=1", "--replace=answer.json")
    assert (broken.exit, "answer.json" in broken.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ([], ["--at"]),
        (["--at=9"], ["9", "0 to 2"]),
        (["--at=nobody"], ["'nobody'"]),
        (["--at=1", "--text=x", "--drop"], ["--text", "--drop"]),
        (["--at=1", "--allow-writes", "--stub-writes"], ["--allow-writes", "--stub-writes"]),
        (["--at=1", "--fail=200"], ["--fail", "599"]),
    ],
)
def test_an_impossible_fork_is_refused(support: Shell, words: list[str], facts: list[str]) -> None:
    """The error names the invalid value or option, and no branch is written."""
    done = support.tracefork("fork", *words, "agent.tape")
    assert done.exit == 2, done.err
    assert [fact for fact in facts if fact not in done.err] == [], done.err
    assert [one.name for one in support.folder.glob("*.tape")] == ["agent.tape"]


def test_a_write_stops_a_fork(shell: Shell) -> None:
    """A plain POST may have side effects; the error names the options for it.

    Each command says of the branch that it was stopped there, and its replay is proven to there.
    What the fork offers next is the call itself, after all that the branch holds.
    """
    assert shell.tracefork("record", "agent.py").exit == 0
    stopped = shell.tracefork("fork", "agent.tape", "--at=1")
    assert (stopped.exit, "--allow-writes" in stopped.err) == (4, True)
    assert "overwrite" not in stopped.err
    words = "stopped before POST http://127.0.0.1"
    for command in ("show agent.1.tape", "ls"):
        assert words in ok(shell.tracefork(*command.split())).out, command
    assert "refused a write" in ok(shell.tracefork("tree", "agent.tape")).out
    replayed = ok(shell.tracefork("replay", "agent.1.tape"))
    assert "✓ replayed 1 of 1 exchange bit-exact" in replayed.err
    assert f"the fork was {words}" in replayed.err
    assert "Traceback" not in replayed.err
    following = stopped.err.rpartition("next: tracefork ")[2].split()
    assert ok(shell.tracefork(*following)).out.splitlines() == ["one", "two"]
    ok(shell.tracefork("fork", "agent.tape", "--at=1", "--stub-writes"))


def test_a_rerun_that_refuses_a_write_says_how_to_go_on(shell: Shell) -> None:
    """Its JSON names the branch, and the command that makes the call."""
    assert shell.tracefork("record", "agent.py").exit == 0
    done = shell.tracefork("rerun", "agent.tape", "agent.py", "--json", "--yes", "--", "one", "2")
    told = done.document
    assert (done.exit, told["exit"], told["reused"], told["live"]) == (4, 4, 1, 0)
    assert "may repeat a side effect" in told["stopped"]
    assert told["next"] == "tracefork fork agent.rerun.tape --at 1 --allow-writes"

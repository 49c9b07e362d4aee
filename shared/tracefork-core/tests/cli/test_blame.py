"""`tracefork blame` and `bisect` find the step that made a run fail."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tracefork_testkit import ModelRequest, ProviderServer, Reply

from .conftest import Shell
from .pages import Read

pytestmark = pytest.mark.many_processes

STEPS = 4
AGENT = f"""\
import os
import httpx2

def main():
    said = "refund"
    with httpx2.Client(verify=False) as client:
        for step in range({STEPS}):
            messages = [{{"role": "user", "content": f"{{step}}: {{said}}"}}]
            body = {{"model": "m", "messages": messages}}
            answer = client.post(os.environ["PROVIDER"] + "/v1/chat/completions", json=body)
            said = answer.json()["choices"][0]["message"]["content"]
    return said

if __name__ == "__main__":
    print(main())
"""


class Wrong:
    """Answers wrongly at step 2 the first time, and never again."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: ModelRequest) -> Reply:
        step, before = request.last_user_text.split(": ")
        self.asked += 1
        return Reply("deny" if self.asked <= STEPS and step == "2" else before)


@pytest.fixture
def desk(shell: Shell) -> Iterator[Shell]:
    """Return a shell with an agent whose run failed."""
    shell.write("agent.py", AGENT)
    with ProviderServer(Wrong()) as server:
        shell.environment["PROVIDER"] = server.url
        assert shell.tracefork("record", "agent.py").out == "deny\n"
        yield shell


def test_bisect_names_the_failing_step_and_its_line(desk: Shell) -> None:
    """Each tried position is reported."""
    done = desk.tracefork("bisect", "--oracle=equals:refund", "agent.tape")
    assert done.exit == 0, done.err
    assert "exchange 2 (agent.py:10 → 'deny'). 4 forks · 7 live calls" in done.out
    assert "· 3 answers kept: bad" in done.err
    passes = desk.tracefork("bisect", "--oracle=equals:deny", "agent.tape")
    assert (passes.exit, "nothing to bisect" in passes.err) == (2, True)


def test_blame_writes_a_page_that_opens_at_its_result(desk: Shell) -> None:
    """A name that is taken is an error before a fork runs."""
    assert desk.tracefork("record", "-o", "fn.tape", "--agent", "agent:main").exit == 0
    words = ["blame", "fn.tape", "--agent", "agent:main", "--oracle=equals:deny", "--yes"]
    words += ["--workers=1", "--budget=30 calls", "--html"]
    taken = desk.write("fn-blame.html", "mine")
    refused = desk.tracefork(*words)
    assert (refused.exit, "already exists" in refused.err) == (2, True)
    assert (taken.read_text(), (desk.folder / "fn.tape.blame").exists()) == ("mine", False)
    done = desk.tracefork(*words, "--overwrite", "--json")
    assert done.document["report"] == str(taken), done.err
    report = Read(taken).report
    assert report["place"] == "panel=blame"
    assert report["runs"][0]["blame"]["verdict"] == done.document["verdict"]["kind"]


def test_blame_streams_its_progress_and_a_report(desk: Shell) -> None:
    """The agent is a function; each line of the stream is JSON."""
    assert desk.tracefork("record", "-o", "fn.tape", "--agent", "agent:main").exit == 0
    words = ["blame", "fn.tape", "--agent", "agent:main", "--oracle=equals:deny"]
    asked = desk.tracefork(*words)
    assert (asked.exit, "--yes" in asked.err) == (2, True)
    unknown = desk.tracefork(*words, "--by=task,agent")
    assert (unknown.exit, "no step of kind 'task'" in unknown.err) == (2, True)
    done = desk.tracefork(*words, "--yes", "--workers=1", "--budget=30 calls", "--stream")
    *progress, last = [json.loads(line) for line in done.out.splitlines()]
    assert progress
    assert all("progress" in line for line in progress)
    report = last["report"]
    assert report["verdict"]["kind"] == "inert"
    assert report["ledger"]["live_calls"] <= 30
    looked = desk.tracefork("blame", "fn.tape", "--status", "--json")
    assert looked.document["forks"] == report["ledger"]["forks"]

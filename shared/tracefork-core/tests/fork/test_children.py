"""A fork also forks the child processes of the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tracefork_core import Edit, fork, record, replay
from tracefork_testkit import ProviderServer

from .agent import Moody

CHILD = """
import sys, time, uuid, httpx2
with httpx2.Client(verify=False) as client:
    for text in sys.argv[2:]:
        drawn = f"{text} {time.time_ns()} {uuid.uuid4()}"
        body = {"model": "m", "messages": [{"role": "user", "content": drawn}]}
        answer = client.post(sys.argv[1], json=body).json()
        print(answer["choices"][0]["message"]["content"])
"""


def test_a_fork_includes_child_processes(tape: Path) -> None:
    """The child's first request is answered from the tape, and its second is changed and live.

    Its draws are on the branch.
    """
    desk = Moody()

    def agent(url: str) -> list[str]:
        command = [sys.executable, "-c", CHILD, f"{url}/v1/chat/completions", "one", "two"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.split("\n")[:2]

    with ProviderServer(desk) as server:
        url = server.url
        with record(tape):
            assert agent(url) == ["answer 1", "answer 2"]
        with fork(tape, at=1, replace=Edit(prompt="three")) as branch:
            assert agent(url) == ["answer 1", "answer 3"]
    assert [text.split()[0] for text in desk.asked] == ["one", "two", "three"]
    assert (branch.replayed, branch.live) == (1, 1)
    with replay(branch.path):
        assert agent(url) == ["answer 1", "answer 3"]

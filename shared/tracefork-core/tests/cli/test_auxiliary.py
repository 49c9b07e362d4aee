"""Requests for token counts are marked, and a replay reports how they differ."""

from __future__ import annotations

import pytest

from .conftest import Shell

AGENT = """\
import os
import sys

import httpx2

for word in sys.argv[1:]:
    path, _, text = word.partition(":")
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": text}]}
    httpx2.post(f"{os.environ['PROVIDER']}/v1/{path}", json=body)
"""
COUNT, CHAT = "messages/count_tokens:one", "chat/completions:two"


@pytest.fixture
def counted(shell: Shell) -> Shell:
    """Record a token count and a question."""
    shell.write("agent.py", AGENT)
    assert shell.tracefork("record", "agent.py", "--", COUNT, CHAT).exit == 0
    return shell


def test_a_token_count_is_marked_auxiliary(counted: Shell) -> None:
    """This holds in the timeline, on its page and in the document; a question is not marked."""
    timeline = counted.tracefork("show", "agent.tape").out.splitlines()
    assert ["auxiliary" in line for line in timeline if line[:1].isdigit()] == [True, False]
    assert "a replay may skip it" in counted.tracefork("show", "agent.tape", "0").out
    found = counted.tracefork("show", "agent.tape", "--json").document["timeline"]
    assert [line["auxiliary"] for line in found] == [True, False]


def test_a_replay_reports_differing_token_counts(counted: Shell) -> None:
    """It is the same run, but not bit-exact; without a difference nothing is reported."""
    done = counted.tracefork("replay", "agent.tape", "agent.py", "--", COUNT, CHAT)
    assert "replayed 2 of 2 exchanges bit-exact" in done.err
    assert "token counts" not in done.err
    words = (CHAT, "messages/count_tokens:three")
    done = counted.tracefork("replay", "agent.tape", "agent.py", "--", *words)
    assert done.exit == 0
    assert "replayed 1 of 2 exchanges alike" in done.err
    assert "1 not requested, 1 not on the tape" in done.err
    done = counted.tracefork("verify", "agent.tape", "--json", "agent.py", "--", CHAT)
    assert done.exit == 0
    replayed = done.document["replays"][0]
    assert (replayed["auxiliary_left"], replayed["bit_exact"]) == (1, False)
    done = counted.tracefork("replay", "agent.tape", "agent.py", "--", COUNT)
    assert done.exit == 1

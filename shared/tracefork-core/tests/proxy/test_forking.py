"""`tracefork proxy fork`: change one answer of a program, and run live from there."""

from __future__ import annotations

from tracefork_testkit import ProviderServer

from ..cli.conftest import Shell
from .conftest import exchanges

ASK = """\
import os, sys, json, urllib.request as r

def ask(words):
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": words}]}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    sent = r.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    return json.load(r.urlopen(sent))["choices"][0]["message"]["content"]

said = "one"
for _ in range(3):
    said = ask(f"@say {said}+")
    print(said)
"""
COMMAND = ("--", "python3", "ask.py")


def test_a_fork_changes_one_answer_and_is_live_from_there(
    shell: Shell, provider: ProviderServer
) -> None:
    """The first call is replayed, the second is given, the third is asked of the provider."""
    shell.write("ask.py", ASK)
    recorded = shell.tracefork("proxy", "record", "run.tape", *COMMAND)
    assert recorded.out.split() == ["one+", "one++", "one+++"], recorded.err
    asked = len(provider.requests)
    words = ("run.tape", "--at", "1", "--text", "other", "-o", "fork.tape", *COMMAND)
    forked = shell.tracefork("proxy", "fork", "--json", *words)
    assert forked.exit == 0, forked.err
    document = forked.document
    assert (document["replayed"], document["given"], document["live"]) == (1, 1, 1)
    assert len(provider.requests) == asked + 1
    replayed = shell.tracefork("proxy", "replay", "fork.tape", *COMMAND)
    assert (replayed.exit, replayed.out.split()) == (0, ["one+", "other", "other+"]), replayed.err
    assert len(provider.requests) == asked + 1


def test_a_fork_asks_another_model_with_a_whole_request(
    shell: Shell, provider: ProviderServer
) -> None:
    """The changed request arrives with its own length, at the provider and not at the proxy."""
    shell.write("ask.py", ASK)
    shell.tracefork("proxy", "record", "run.tape", *COMMAND)
    words = ("run.tape", "--at", "1", "--model", "gpt-5", "-o", "fork.tape", *COMMAND)
    forked = shell.tracefork("proxy", "fork", *words)
    assert forked.exit == 0, forked.err
    assert forked.out.split() == ["one+", "one++", "one+++"]
    models = [request.json()["model"] for request in provider.requests]
    assert models == ["gpt-5-mini"] * 3 + ["gpt-5"] * 2
    urls = {exchange.url for exchange in exchanges(shell.folder / "fork.tape")}
    assert urls == {f"{provider.url}/v1/chat/completions"}


def test_a_fork_needs_a_fork_point(shell: Shell) -> None:
    """Without --at, the error says how to find one."""
    shell.write("ask.py", ASK)
    shell.tracefork("proxy", "record", "run.tape", *COMMAND)
    done = shell.tracefork("proxy", "fork", "run.tape", *COMMAND)
    assert done.exit == 2
    assert "--at" in done.err

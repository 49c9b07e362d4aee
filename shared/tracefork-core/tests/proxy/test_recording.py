"""`tracefork proxy record` and `replay`: programs that tracefork cannot wrap."""

from __future__ import annotations

import json
import sys

import pytest

from tracefork_testkit import ProviderServer

from ..cli.conftest import Shell
from .conftest import KEY, curl, exchanges

AGENT = ("--", sys.executable, "agent.py", "@say good day")


def test_curl_replays_without_the_provider(shell: Shell, provider: ProviderServer) -> None:
    """curl prints the same bytes again, and the provider gets no second request."""
    recorded = shell.tracefork("proxy", "record", "run.tape", *curl())
    asked = len(provider.requests)
    replayed = shell.tracefork("proxy", "replay", "run.tape", *curl())
    assert (recorded.exit, replayed.exit) == (0, 0), recorded.err + replayed.err
    assert replayed.out == recorded.out
    assert json.loads(recorded.out)["choices"][0]["message"]["content"] == "hello"
    assert (asked, len(provider.requests)) == (1, 1)
    assert "replayed 1 of 1 exchange bit-exact" in replayed.err


def test_the_tape_names_the_provider_and_not_the_proxy(
    shell: Shell, provider: ProviderServer
) -> None:
    """The URL on the tape is that of the upstream server, which gets the key of the program."""
    shell.tracefork("proxy", "record", "run.tape", *curl())
    (exchange,) = exchanges(shell.folder / "run.tape")
    assert exchange.url == f"{provider.url}/v1/chat/completions"
    assert exchange.status == 200
    sent = provider.requests[0].headers
    assert "host" in {name.lower() for name, _ in sent}
    assert f"Bearer {KEY}" in {value for _, value in sent}


def test_a_python_program_with_two_sdks_replays(shell: Shell, provider: ProviderServer) -> None:
    """The openai and anthropic SDKs find the proxy by their variables, and stream through it."""
    recorded = shell.tracefork("proxy", "record", "run.tape", *AGENT)
    replayed = shell.tracefork("proxy", "replay", "run.tape", *AGENT)
    assert recorded.exit == replayed.exit == 0, recorded.err + replayed.err
    assert recorded.out == replayed.out == "good day\n" * 4
    assert len(provider.requests) == 4


def test_each_event_of_a_stream_is_a_chunk_on_the_tape(shell: Shell) -> None:
    """A stream is passed on in pieces, and not when it has ended."""
    shell.tracefork("proxy", "record", "run.tape", *AGENT)
    stream = exchanges(shell.folder / "run.tape")[1]
    assert len(stream.aside.sizes) > 2


def test_a_tape_of_the_proxy_replays_an_agent_of_this_python(shell: Shell) -> None:
    """The same agent, run by `tracefork replay`, makes the requests that the proxy recorded."""
    shell.tracefork("proxy", "record", "run.tape", *AGENT)
    replayed = shell.tracefork("replay", "run.tape", "agent.py", "--", "@say good day")
    assert replayed.exit == 0, replayed.err
    assert replayed.out == "good day\n" * 4


def test_a_tape_of_an_agent_replays_behind_the_proxy(shell: Shell) -> None:
    """The other way: the proxy answers from a tape of `tracefork record`."""
    shell.tracefork("record", "-o", "run.tape", "agent.py", "--", "@say good day")
    replayed = shell.tracefork("proxy", "replay", "run.tape", *AGENT)
    assert replayed.exit == 0, replayed.err
    assert replayed.out == "good day\n" * 4


def test_replay_without_a_command_runs_the_recorded_one(shell: Shell) -> None:
    """`tracefork replay` knows the proxied command that recorded a tape on this machine."""
    recorded = shell.tracefork("proxy", "record", "run.tape", *curl())
    replayed = shell.tracefork("replay", "run.tape")
    assert (replayed.exit, replayed.out) == (0, recorded.out), replayed.err


def test_other_commands_know_the_proxied_command(shell: Shell, provider: ProviderServer) -> None:
    """A tape of the proxy is proven, run again and forked by its name alone."""
    recorded = shell.tracefork("proxy", "record", "run.tape", *curl())
    verified = shell.tracefork("verify", "run.tape")
    again = shell.tracefork("rerun", "run.tape")
    assert (verified.exit, again.exit, again.out) == (0, 0, recorded.out), verified.err + again.err
    assert len(provider.requests) == 1
    forked = shell.tracefork("fork", "run.tape", "--at", "0", "--text", "other")
    assert forked.exit == 0, forked.err
    assert json.loads(forked.out)["choices"][0]["message"]["content"] == "other"


@pytest.mark.parametrize("status", [0, 7])
def test_the_exit_status_is_that_of_the_command(shell: Shell, status: int) -> None:
    """A recording exits with it; a replay that ends the same way exits with 0."""
    command = f"{curl()[3]}; exit {status}"
    words = ("run.tape", "--", "sh", "-c", command)
    assert shell.tracefork("proxy", "record", *words).exit == status
    replayed = shell.tracefork("proxy", "replay", *words)
    assert replayed.exit == 0, replayed.err


def test_the_json_document_has_stdout_alone(shell: Shell) -> None:
    """The output of the command goes to stderr, and the command itself is no blind spot."""
    document = shell.tracefork("proxy", "record", "--json", "run.tape", *curl()).document
    assert document["exchanges"] == 1
    assert document["coverage"]["subprocesses"] == []
    assert document["next"].startswith("tracefork proxy replay run.tape -- sh -c ")


def test_a_command_that_does_not_exist_makes_no_tape(shell: Shell) -> None:
    """The error names the program, and nothing is written."""
    done = shell.tracefork("proxy", "record", "run.tape", "--", "no-such-program")
    assert done.exit == 2
    assert "no-such-program" in done.err
    assert not (shell.folder / "run.tape").exists()

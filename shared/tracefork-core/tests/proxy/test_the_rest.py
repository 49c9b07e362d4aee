"""What a command reaches past the proxy: seen, refused, or out of reach."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tracefork_core import UsageError
from tracefork_core.proxy import network
from tracefork_testkit import ProviderServer

from ..cli.conftest import Shell

PAST = """\
import sys
import urllib.request

print(len(urllib.request.urlopen(sys.argv[1] + "/bytes/5").read()))
"""
REFUSES = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode
namespaces = pytest.mark.skipif(REFUSES != 0, reason="this system refuses network namespaces")


def past(provider: ProviderServer) -> tuple[str, ...]:
    """Return the words of a Python program that goes past the proxy."""
    return ("--", sys.executable, "past.py", provider.url)


def test_a_recording_counts_what_goes_past_the_proxy(
    shell: Shell, provider: ProviderServer
) -> None:
    """The program is not disturbed, and the report names the address that it reached."""
    shell.write("past.py", PAST)
    done = shell.tracefork("proxy", "record", "--json", "run.tape", *past(provider))
    assert (done.exit, done.document["exchanges"]) == (0, 0)
    assert done.document["coverage"]["strays"] == [provider.url.removeprefix("http://")]


def test_a_replay_refuses_what_a_python_program_sends_past_the_proxy(
    shell: Shell, provider: ProviderServer
) -> None:
    """Nothing is sent, and the exit code is that of a refused connection."""
    shell.write("past.py", PAST)
    shell.tracefork("proxy", "record", "run.tape", *past(provider))
    asked = len(provider.requests)
    done = shell.tracefork("proxy", "replay", "run.tape", *past(provider))
    assert done.exit == 4, done.err
    assert len(provider.requests) == asked == 1


@namespaces
def test_without_a_network_only_the_proxy_is_reached(
    shell: Shell, provider: ProviderServer
) -> None:
    """curl gets its answer through the proxy, and no connection to the provider itself."""
    both = 'curl -s "$ANTHROPIC_BASE_URL/bytes/5" | wc -c; curl -s -m 5 "$0/bytes/5" || echo cut'
    words = ("--no-network", "run.tape", "--", "sh", "-c", both, provider.url)
    done = shell.tracefork("proxy", "record", *words)
    assert done.out.split() == ["5", "cut"], done.err
    assert len(provider.requests) == 1
    replayed = shell.tracefork("proxy", "replay", *words)
    assert (replayed.exit, replayed.out) == (0, done.out), replayed.err


@namespaces
def test_without_a_network_the_status_is_that_of_the_command(shell: Shell) -> None:
    """The helper that runs inside passes on the status."""
    words = ("--no-network", "run.tape", "--", "sh", "-c", "exit 7")
    assert shell.tracefork("proxy", "record", *words).exit == 7


def test_a_system_without_namespaces_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what the system answered, and what to do instead."""
    refusing = ("sh", "-c", "echo unshare failed: Operation not permitted >&2; exit 1")
    monkeypatch.setattr(network, "_NAMESPACE", refusing)
    with pytest.raises(UsageError, match=r"Operation not permitted.*Leave the option out"):
        network.check_namespaces()

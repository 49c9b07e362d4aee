"""A program behind the proxy that asks what the tape does not hold."""

from __future__ import annotations

import sys

from tracefork_testkit import ProviderServer

from ..cli.conftest import Shell
from .conftest import curl

AGENT = ("--", sys.executable, "agent.py")


def test_a_changed_request_is_answered_with_424_and_an_end_of_retries(
    shell: Shell, provider: ProviderServer
) -> None:
    """The program gets the text of the divergence, and nothing is sent."""
    shell.tracefork("proxy", "record", "run.tape", *curl("one"))
    asked = len(provider.requests)
    words = [word.replace("curl -sS", "curl -sS -i") for word in curl("two")]
    done = shell.tracefork("proxy", "replay", "run.tape", *words)
    assert done.exit == 1
    assert "HTTP/1.1 424" in done.out
    assert "x-should-retry: false" in done.out
    assert "tracefork_divergence" in done.out
    assert len(provider.requests) == asked


def test_the_card_names_what_differs_and_what_to_type(shell: Shell) -> None:
    """The card is printed at the end, with commands of the proxy."""
    shell.tracefork("proxy", "record", "run.tape", *curl("one"))
    done = shell.tracefork("proxy", "replay", "run.tape", *curl("two"))
    assert "/messages/0/content" in done.err
    assert "tracefork proxy replay --ignore /messages/0/content run.tape" in done.err
    assert "tracefork proxy record run-2.tape" in done.err


def test_the_ignored_pointer_of_the_card_makes_the_replay_pass(shell: Shell) -> None:
    """What the card suggests works."""
    shell.tracefork("proxy", "record", "run.tape", *curl("one"))
    option = ("--ignore", "/messages/0/content")
    done = shell.tracefork("proxy", "replay", *option, "run.tape", *curl("two"))
    assert done.exit == 0, done.err
    assert "one" in done.out


def test_an_sdk_gives_up_at_the_first_divergence(shell: Shell) -> None:
    """The SDK does not retry a 424, and its error shows it."""
    shell.tracefork("proxy", "record", "run.tape", *AGENT, "@say one")
    done = shell.tracefork("proxy", "replay", "--json", "run.tape", *AGENT, "@say two")
    assert done.exit == 1
    assert done.document["divergence"]["pointer"] == "/messages/0/content"
    assert "openai.APIStatusError: Error code: 424" in done.err


def test_a_request_that_is_not_made_is_a_divergence(shell: Shell) -> None:
    """A command that asks for nothing is another run."""
    shell.tracefork("proxy", "record", "run.tape", *curl("one"))
    done = shell.tracefork("proxy", "replay", "run.tape", "--", "true")
    assert done.exit == 1
    assert "never asked for" in done.err

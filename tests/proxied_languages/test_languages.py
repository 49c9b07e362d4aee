"""Programs of other languages, with their real SDKs, behind `tracefork proxy`."""

from __future__ import annotations

import json
import shutil

import pytest

from tracefork_core import Tape

from .conftest import HERE, Desk

NODE = ("--", "node", str(HERE / "agent.js"))
JAVA = ("--", "java", str(HERE / "Agent.java"))
needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")


def test_the_sdks_of_node_replay_without_the_provider(desk: Desk) -> None:
    """openai and @anthropic-ai/sdk find the proxy, stream, and get equal answers again."""
    recorded = desk.tracefork("proxy", "record", "run.tape", *NODE, "@say good day")
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout.splitlines() == [*["good day"] * 4, "abcd"]
    asked = len(desk.provider.requests)
    replayed = desk.tracefork("proxy", "replay", "--json", "run.tape", *NODE, "@say good day")
    assert replayed.returncode == 0, replayed.stderr
    assert json.loads(replayed.stdout)["exchanges"] == asked == 8
    assert len(desk.provider.requests) == asked
    assert recorded.stdout in replayed.stderr


def test_an_sdk_of_node_gives_up_at_a_divergence(desk: Desk) -> None:
    """The SDK does not retry a 424, and its error has the text of the divergence."""
    desk.tracefork("proxy", "record", "run.tape", *NODE, "@say one")
    asked = len(desk.provider.requests)
    done = desk.tracefork("proxy", "replay", "run.tape", *NODE, "@say two")
    assert done.returncode == 1
    assert "424" in done.stderr
    assert "/messages/0/content" in done.stderr
    assert len(desk.provider.requests) == asked


def test_a_program_of_node_forks(desk: Desk) -> None:
    """The first answer is another one, and all that follows is asked again."""
    desk.tracefork("proxy", "record", "run.tape", *NODE, "@say good day")
    words = ("run.tape", "--at", "0", "--text", "good night", "-o", "fork.tape")
    forked = desk.tracefork("proxy", "fork", *words, *NODE, "@say good day")
    assert forked.returncode == 0, forked.stderr
    assert forked.stdout.splitlines() == ["good night", *["good day"] * 3, "abcd"]


def test_a_retry_after_429_is_on_the_tape(desk: Desk) -> None:
    """The SDK waits and asks again; the replay has both attempts."""
    recorded = desk.tracefork("proxy", "record", "run.tape", *NODE, "@fail 429 1\n@say good day")
    assert recorded.returncode == 0, recorded.stderr
    with Tape.open(desk.folder / "run.tape") as tape:
        statuses = [exchange.status for exchange in tape.exchanges]
    assert (statuses.count(429), statuses.count(200)) == (4, 8)
    replayed = desk.tracefork("proxy", "replay", "run.tape", *NODE, "@fail 429 1\n@say good day")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr


@needs_java
def test_a_program_of_java_replays(desk: Desk) -> None:
    """Java's own HTTP client offers an upgrade to HTTP/2, which the proxy does not take."""
    recorded = desk.tracefork("proxy", "record", "run.tape", *JAVA, "hello")
    assert recorded.returncode == 0, recorded.stderr
    assert '"hello"' in recorded.stdout
    asked = len(desk.provider.requests)
    replayed = desk.tracefork("proxy", "replay", "run.tape", *JAVA, "hello")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    assert len(desk.provider.requests) == asked == 1

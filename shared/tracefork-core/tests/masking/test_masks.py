"""What the user asks to mask, what the tape says about it, and the modes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from tracefork_core import DivergenceError, Tape, UsageError, record, replay
from tracefork_testkit import ProviderServer

from .conftest import KEY, OTHER_KEY, everything_kept


def say(parrot: str, *texts: str) -> list[str]:
    with httpx2.Client(verify=False) as client:
        return [client.post(f"{parrot}/echo", content=text.encode()).text for text in texts]


def test_a_named_variable_is_masked_at_replay_too(
    tape: Path, parrot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tape holds the name, so the replay needs no option."""
    monkeypatch.setenv("CUSTOMER", "Ada Lovelace")
    with record(tape, mask=["CUSTOMER", "NOT_SET"]) as recording:
        assert say(parrot, "I am Ada Lovelace.") == ["I am Ada Lovelace."]
    assert b"Lovelace" not in everything_kept(tape.parent)
    assert recording.receipt is not None
    assert recording.receipt.secrets == {"CUSTOMER": 2, "NOT_SET": 0}
    monkeypatch.setenv("CUSTOMER", "Charles Babbage")
    with replay(tape) as run:
        assert say(parrot, "I am Charles Babbage.") == ["I am tracefork-secret-CUSTOMER."]
    assert run.digest == recording.digest


def test_a_replay_needs_the_patterns_of_its_recording(tape: Path, parrot: str) -> None:
    """The tape holds only their number: a pattern's text may contain a secret."""
    mask = [r"re:ID-\d+", "re:unheard-of-[a-z]+"]
    with record(tape, mask=mask):
        say(parrot, "ID-17 and ID-4711")
    kept = everything_kept(tape.parent)
    assert b"ID-" not in kept
    assert b"unheard-of" not in kept
    with replay(tape, mask=mask) as run:
        assert run.tape.environment is not None
        assert run.tape.environment.masks[:2] == ["re:1", "re:2"]
        say(parrot, "ID-1 and ID-2")
    for fewer in ([], mask[:1]):
        with pytest.raises(UsageError, match="2 pattern"), replay(tape, mask=fewer):
            pass


def test_a_stream_with_patterns_is_stored_when_it_ends(tape: Path, parrot: str) -> None:
    """A pattern may match across any pieces, so the tape waits for the whole body."""
    with record(tape, mask=["re:b+"]), httpx2.Client(verify=False) as client:
        with client.stream("POST", f"{parrot}/split?at=3", content=b"abbbbc") as response:
            pieces = response.iter_raw()
            assert next(pieces) == b"abb"
            with Tape.open(tape) as so_far:
                assert so_far.exchanges[0].response_body == b""
            assert list(pieces) == [b"bbc"]
    with Tape.open(tape) as recorded:
        assert recorded.exchanges[0].chunks == [b"atracefork-secret-PATTERN_1", b"c"]


def test_a_secret_of_another_machine_does_not_break_a_replay(
    tape: Path, parrot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word of the recording that is a password here is compared unmasked."""
    with record(tape):
        first = say(parrot, "the staging-db-2 host")
    monkeypatch.setenv("HERE_PASSWORD", "staging-db-2")
    with replay(tape) as run:
        assert say(parrot, "the staging-db-2 host") == first
    assert run.digest == run.tape.digest
    with pytest.raises(DivergenceError), replay(tape):
        say(parrot, "the staging-db-3 host")


@pytest.mark.usefixtures("secrets")
def test_raw_masks_nothing_at_record_and_replay(tape: Path, parrot: str) -> None:
    """Credentials in headers are still dropped."""
    with record(tape, mode="raw") as recording, httpx2.Client(verify=False) as client:
        client.post(f"{parrot}/echo", content=KEY, headers={"x-api-key": "dropped-all-the-same"})
    assert recording.receipt is not None
    assert recording.receipt.secrets == {}
    kept = everything_kept(tape.parent)
    assert KEY.encode() in kept
    assert b"dropped-all-the-same" not in kept
    with replay(tape) as run:
        assert say(parrot, KEY) == [KEY]
        assert run.tape.environment is not None
        assert run.tape.mode == "raw"
    with pytest.raises(DivergenceError), replay(tape):
        say(parrot, OTHER_KEY)


@pytest.mark.parametrize(
    "options",
    [
        {"mask": "CUSTOMER"},
        {"mask": ["my secret!"]},
        {"mask": ["re:("]},
        {"mask": ["re:x*"]},
        {"mask": ["TINY"]},
        {"mode": "careful"},
        {"mode": "raw", "mask": ["CUSTOMER"]},
    ],
    ids=str,
)
def test_an_invalid_mask_is_refused(
    tape: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Before the agent runs, without creating a tape, and without repeating a secret."""
    monkeypatch.setenv("TINY", "abc")
    with pytest.raises(UsageError) as raised, record(tape, **options):
        pytest.fail("the agent ran")
    assert "my secret!" not in str(raised.value)
    assert not tape.exists()


@pytest.mark.usefixtures("secrets")
def test_an_sdk_that_quotes_a_secret_replays_with_another(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conversation that quotes the key continues with the placeholder, streamed or not."""

    def talk(url: str, key: str) -> str:
        with openai.OpenAI(base_url=f"{url}/v1", api_key=key) as client:
            said = f"@say the key is {key}"
            for stream in (False, True):
                messages: Any = [{"role": "user", "content": said}]
                answer: Any = client.chat.completions.create(
                    model="m", messages=messages, stream=stream
                )
                pieces = answer if stream else [answer]
                choices = [piece.choices[0] for piece in pieces if piece.choices]
                texts = [c.delta.content if stream else c.message.content for c in choices]
                said = "@say again: " + "".join(text or "" for text in texts)
        return said

    with ProviderServer() as server, record(tape) as recording:
        assert talk(server.url, KEY) == f"@say again: again: the key is {KEY}"
    assert KEY.encode() not in everything_kept(tape.parent)
    monkeypatch.setenv("SERVICE_API_KEY", OTHER_KEY)
    with replay(tape) as run:
        assert "tracefork-secret-SERVICE_API_KEY" in talk("http://127.0.0.1:65000", OTHER_KEY)
    assert run.digest == recording.digest

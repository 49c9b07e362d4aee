"""Redacting a tape gives the tape that a masked recording would have given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core import DivergenceError, Tape, record, replay
from tracefork_core.masking.masks import Masks
from tracefork_core.redaction.redaction import Redaction, scan
from tracefork_core.tape.rewrite import rewrite

from .conftest import KEY, OTHER_KEY, OTHER_PASSWORD, PASSWORD, Send, everything_kept, forms
from .test_canary import tour

pytestmark = pytest.mark.usefixtures("secrets")


def redacted(tape: Path, name: str, masks: Masks | None = None) -> Path:
    """Write a redacted copy of a tape into a folder of its own."""
    target = tape.parent / name / tape.name
    target.parent.mkdir()
    with Tape.open(tape) as opened:
        found = (masks or Masks()).named_on(opened.environment)
        rewrite(opened, target, Redaction(found), mode="safe")
    return target


async def test_a_redacted_tape_equals_a_safe_recording(tape: Path, parrot: str, send: Send) -> None:
    """In every part and spelling of a request: the digest, the chunks and the counts are equal."""
    with record(tape, mode="raw"):
        await tour(send, parrot, KEY, PASSWORD)
    safe = tape.with_name("safe.tape")
    with record(safe):
        await tour(send, parrot, KEY, PASSWORD)
    with Tape.open(redacted(tape, "new")) as ours, Tape.open(safe) as theirs:
        assert ours.digest == theirs.digest
        for one, other in zip(ours.exchanges, theirs.exchanges, strict=True):
            assert one.chunks == other.chunks
            assert (one.aside.sent, one.aside.url) == (other.aside.sent, other.aside.url)
            assert one.aside.received.keys() == other.aside.received.keys()
        assert ours.receipt is not None
        assert theirs.receipt is not None
        assert ours.receipt.secrets == theirs.receipt.secrets


async def test_a_redacted_tape_replays_with_other_secrets(
    tape: Path, parrot: str, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the original tape does not."""
    with record(tape, mode="raw"):
        await tour(send, parrot, KEY, PASSWORD)
    new = redacted(tape, "new")
    kept = everything_kept(new.parent)
    assert not [form for value in (KEY, PASSWORD) for form in forms(value).values() if form in kept]
    monkeypatch.setenv("SERVICE_API_KEY", OTHER_KEY)
    monkeypatch.setenv("DB_PASSWORD", OTHER_PASSWORD)
    with replay(new) as run:
        await tour(send, parrot, OTHER_KEY, OTHER_PASSWORD)
    assert run.digest == run.tape.digest
    with pytest.raises(DivergenceError), replay(tape):
        await tour(send, parrot, OTHER_KEY, OTHER_PASSWORD)


@pytest.mark.parametrize("mask", [[], [r"re:after\d+"]])
async def test_a_scan_finds_nothing_on_a_redacted_tape(
    tape: Path, parrot: str, send: Send, mask: list[str]
) -> None:
    """It finds the secrets of every exchange before, with patterns and without."""
    bodies = [*forms(PASSWORD).values(), b"after77 " + KEY.encode()]
    with record(tape, mode="raw"):
        for body in bodies:
            await send("POST", f"{parrot}/bytewise", content=b"<" + body + b">")
            await send("POST", f"{parrot}/gzip", content=b"<" + body + b">")
    masks = Masks.read(mask)
    with Tape.open(tape) as before, Tape.open(redacted(tape, "new", masks)) as after:
        found = {place.exchange for place in scan(before, masks).found}
        assert found == set(range(2 * len(bodies)))
        assert not scan(after, masks).found
        assert [len(one.chunks) for one in after.exchanges] == [
            len(one.chunks) for one in before.exchanges
        ]


async def test_a_cut_off_body_keeps_no_half_of_a_secret(
    tape: Path, parrot: str, send: Send
) -> None:
    """As in a masked recording."""
    said = b"and the key is " + KEY[:12].encode()
    for mode, path in (("raw", tape), ("safe", tape.with_name("safe.tape"))):
        with record(path, mode="raw" if mode == "raw" else "safe"):
            with pytest.raises(Exception):  # noqa: B017, PT011 - each library has its own
                await send("POST", f"{parrot}/cut", content=said)
    with Tape.open(redacted(tape, "new")) as ours, Tape.open(tape.with_name("safe.tape")) as theirs:
        assert KEY[:12].encode() not in ours.exchanges[0].response_body
        assert ours.exchanges[0].payload.response == theirs.exchanges[0].payload.response

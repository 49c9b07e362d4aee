"""A rewritten tape holds what the old one held, except for the requested changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Tape, TapeError, UsageError
from tracefork_core.tape import Exchange, StepRecord, TapeWriter
from tracefork_core.tape.checkpoint import SAVED, Checkpoint, Saved, Value, named
from tracefork_core.tape.digest import sha256
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import STEP
from tracefork_core.tape.file import TapeFile
from tracefork_core.tape.integrity import check_integrity
from tracefork_core.tape.rewrite import Change, bodies, rewrite

from .runs import put, read, transcript, write

RUN = transcript(5)


class Louder(Change):
    """Turns every text to capitals, and cuts each answer in two."""

    def exchange(
        self, exchange: Exchange, payload: dict[str, Any], aside: dict[str, Any]
    ) -> tuple[bytes, list[bytes]]:
        asked, answered = bodies(exchange)
        payload["request"]["url"] = payload["request"]["url"].upper()
        loud = b"".join(answered).upper()
        return asked.upper(), [loud[:7], loud[7:]]

    def event(self, kind: str, payload: dict[str, Any], aside: dict[str, Any]) -> None:
        if kind == STEP:
            aside["name"] = aside["name"].upper()

    def body(self, data: bytes) -> bytes:
        return data.upper()

    def value(self, data: bytes) -> bytes:
        return b"a value: " + data


def test_a_rewrite_without_a_change_keeps_the_digest(tape: Path) -> None:
    """Bodies and events are the same."""
    write(tape, RUN)
    assert list(tape.parent.iterdir()) == [tape]
    copy = tape.with_name("copy.tape")
    with Tape.open(tape) as opened:
        assert rewrite(opened, copy) == opened.digest
        kinds = sorted(event.kind for event in opened.events)
    assert read(copy) == RUN
    with Tape.open(copy) as copied:
        assert sorted(event.kind for event in copied.events) == kinds
    assert check_integrity(copy).damage == []


def test_a_change_reaches_everything(tape: Path) -> None:
    """Documents, bodies in pieces, addresses, the digest and the receipt are changed."""
    writer = TapeWriter(tape, describe())
    writer.note(STEP, aside=StepRecord("s0", "agent", "quiet"))
    put(writer, RUN)
    writer.abort()
    write(tape.with_name("whole.tape"), RUN)
    for name, complete in ((tape.name, False), ("whole.tape", True)):
        loud = tape.with_name(f"loud-{name}")
        with Tape.open(tape.with_name(name)) as opened:
            digest = rewrite(opened, loud, Louder())
            assert digest != opened.digest
        with Tape.open(loud) as changed:
            assert (changed.digest, changed.complete) == (digest, complete)
            for exchange, (asked, answered) in zip(changed.exchanges, RUN, strict=True):
                assert exchange.url == "HTTPS://MODEL.TEST/V1/CHAT"
                assert exchange.request_body == asked.upper()
                assert exchange.chunks == [answered.upper()[:7], answered.upper()[7:]]
            assert [step.name for step in changed.steps] == ([] if complete else ["QUIET"])
        result = check_integrity(loud)
        assert (result.damage, result.recorded) == ([], digest if complete else None)


def test_a_body_of_no_exchange_is_changed_too(tape: Path) -> None:
    """The old body is not kept beside the new one."""
    with_spare = TapeFile(tape)
    with_spare.commit(b"", [(b"spare", sha256(b"spare"), ("", ""))])
    with_spare.leave()
    with Tape.open(tape) as opened:
        rewrite(opened, tape.with_name("loud.tape"), Louder())
    with Tape.open(tape.with_name("loud.tape")) as changed:
        assert [changed.blob(sha) for sha in changed.blobs] == [b"SPARE"]


def test_the_values_of_checkpoints_are_changed_as_values(tape: Path) -> None:
    """The event names the new values, and the old ones are not kept."""
    head, state = Value("json", sha256(b"head")), Value("json", sha256(b"state"))
    saved = Saved(Checkpoint("thread", "", "1", head, {"messages": state}))
    writer = TapeWriter(tape, describe())
    writer.keep(SAVED, saved, [(data, sha256(data), ("", "")) for data in (b"head", b"state")])
    writer.abort()
    with Tape.open(tape) as opened:
        rewrite(opened, tape.with_name("loud.tape"), Louder())
    with Tape.open(tape.with_name("loud.tape")) as changed:
        (event,) = changed.checkpoints
        assert [changed.blob(value.sha) for _, value in named(event)] == [
            b"a value: head",
            b"a value: state",
        ]
        assert len(changed.blobs) == 2


def test_the_new_tape_has_the_requested_mode(tape: Path) -> None:
    """By default it has the mode of the old tape."""
    write(tape, RUN, mode="raw")
    with Tape.open(tape) as opened:
        rewrite(opened, tape.with_name("raw.tape"))
        rewrite(opened, tape.with_name("safe.tape"), mode="safe")
    modes = []
    for name in ("raw", "safe"):
        with Tape.open(tape.with_name(f"{name}.tape")) as opened:
            modes.append(opened.mode)
    assert modes == ["raw", "safe"]


def test_a_rewritten_metadata_tape_holds_the_same_hashes(tape: Path) -> None:
    """It still has no bodies."""
    write(tape, RUN, mode="metadata")
    with Tape.open(tape) as opened:
        assert rewrite(opened, tape.with_name("copy.tape"), Change()) == opened.digest
    with Tape.open(tape.with_name("copy.tape")) as copied:
        assert [one.request.body for one in copied.exchanges] == [sha256(asked) for asked, _ in RUN]
        with pytest.raises(TapeError, match="metadata"):
            copied.blob(sha256(RUN[0][0]))


def test_a_change_that_fails_leaves_no_file(tape: Path) -> None:
    """Half of a tape would look like a complete one."""

    class Failing(Change):
        def event(self, kind: str, payload: dict[str, Any], aside: dict[str, Any]) -> None:
            raise RuntimeError(kind)

    write(tape, RUN)
    with Tape.open(tape) as opened:
        with pytest.raises(RuntimeError, match="environment"):
            rewrite(opened, tape.with_name("half.tape"), Failing())
        with pytest.raises(UsageError, match="exists"):
            rewrite(opened, tape)
    assert sorted(file.name for file in tape.parent.iterdir()) == [tape.name]
    assert read(tape) == RUN

"""Checkpoints saved in a session are on its tape, and a replay reads them there."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import msgspec
import pytest

import tracefork_core as tracefork
from tracefork_core.adapters import (
    SavedCheckpoint,
    SavedValue,
    SavedWrite,
    checkpoints,
    recorded_checkpoints,
)
from tracefork_core.cli.main import main
from tracefork_core.masking.masks import Masks
from tracefork_core.redaction.redaction import Redaction
from tracefork_core.tape.rewrite import rewrite

SECRET = "correct-horse-battery-staple"


def put(
    path: Path, said: object, name: str = "1", parent: str | None = None, by: str = "me"
) -> SavedCheckpoint:
    """Save a state with one value."""
    bodies: dict[str, bytes] = {}
    head, value = stored({"v": 4}, bodies), stored(said, bodies)
    saved = SavedCheckpoint("T", "", name, head, {"said": value}, {"by": by}, parent, 10**18)
    checkpoints(path).put(saved, bodies)
    return saved


def stored(value: object, bodies: dict[str, bytes]) -> SavedValue:
    """Serialise a value as a framework does: its own types are MessagePack extensions."""
    body = msgspec.msgpack.encode(value)
    sha = hashlib.sha256(body).hexdigest()
    bodies[sha] = body
    return SavedValue("msgpack", sha)


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """Return the path of the tape."""
    return tmp_path / "run.tape"


def value_of(path: Path) -> object:
    """Return the only value of the last checkpoint on a tape."""
    with tracefork.Tape.open(path) as opened:
        value = recorded_checkpoints(opened)[-1].values["said"]
        return msgspec.msgpack.decode(opened.blob(value.sha))


def test_a_run_records_the_checkpoints_it_saves(tape: Path) -> None:
    """No other file is needed: the checkpointer of a replay reads the tape."""
    with tracefork.record(tape):
        saved = put(tape, ["hello"])
        assert checkpoints(tape).find("T", "") == saved
    with tracefork.Tape.open(tape) as opened:
        assert recorded_checkpoints(opened) == [saved]
    assert value_of(tape) == ["hello"]
    assert [file.name for file in tape.parent.iterdir()] == ["run.tape"]


def test_a_run_records_the_checkpoints_it_found(tape: Path) -> None:
    """It replays without the file that it resumed from, and they do not count as saved by it."""
    threads = tape.with_name("threads.tape")
    put(threads, ["before"])
    with tracefork.record(tape):
        found = checkpoints(threads).find("T", "")
        put(threads, ["after"], "2", "1")
    threads.unlink()
    with tracefork.Tape.open(tape) as opened:
        assert [one.id for one in recorded_checkpoints(opened)] == ["2"]
    with tracefork.replay(tape):
        assert checkpoints(threads).find("T", "") == found
        assert checkpoints(threads).body("T", found.values["said"]) if found else False
    assert not threads.exists()


def test_a_replay_changes_neither_the_tape_nor_the_file(tape: Path) -> None:
    """Its checkpoints stay in memory until it ends."""
    with tracefork.record(tape):
        put(tape, ["hello"])
    before = tape.read_bytes()
    with tracefork.replay(tape):
        put(tape, ["other"], "2")
        latest = checkpoints(tape).find("T", "")
        assert latest is not None
        assert latest.id == "2"
    assert tape.read_bytes() == before


def test_secrets_are_masked_inside_of_values(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the value stays: lengths are computed again, also those of extensions."""
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    inner = msgspec.msgpack.encode(["app", "Doc", {"text": f"it is {SECRET}, she said"}])
    with tracefork.record(tape):
        put(tape, [f"the word is {SECRET}", msgspec.msgpack.Ext(5, inner), 7])
    masked, doc, seven = msgspec.convert(value_of(tape), list[object])
    assert (seven, SECRET in str(masked)) == (7, False)
    assert isinstance(doc, msgspec.msgpack.Ext)
    text = msgspec.msgpack.decode(doc.data)[2]["text"]
    assert text.startswith("it is ")
    assert text.endswith(", she said")
    assert SECRET not in text


def test_secrets_are_masked_in_metadata(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording masks the secrets that it knows; redacting masks those found later."""
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    with tracefork.record(tape):
        put(tape, ["hello"], by=f"one who says {SECRET}, and a cat")
    target = tape.with_name("redacted.tape")
    with tracefork.Tape.open(tape) as opened:
        by = str(recorded_checkpoints(opened)[0].metadata["by"])
        rewrite(opened, target, Redaction(Masks.read(["re:cat"])))
    assert by.startswith("one who says ")
    assert SECRET not in by
    assert "cat" in by
    with tracefork.Tape.open(target) as opened:
        assert "cat" not in str(recorded_checkpoints(opened)[0].metadata["by"])


def test_a_secret_too_deep_to_replace_is_overwritten(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same number of bytes, so that the value can still be read."""
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    deep: object = f"the word is {SECRET}"
    for _ in range(300):
        deep = [deep]
    with tracefork.record(tape):
        put(tape, deep)
    found = value_of(tape)
    for _ in range(300):
        (found,) = msgspec.convert(found, list[object])
    assert found == f"the word is {'*' * len(SECRET)}"


def test_two_files_of_one_run_stay_separate(tape: Path) -> None:
    """Each has a thread of the same name. Asking for a third file lists the two."""
    first, second = tape.with_name("first.tape"), tape.with_name("second.tape")
    with tracefork.record(tape):
        put(first, ["of the first"])
        put(second, ["of the second"])
    with tracefork.replay(tape):
        for path, said in ((second, "of the second"), (first, "of the first")):
            checkpoints(path).called("look", "T", None)
            found = checkpoints(path).find("T", "")
            assert found is not None
            body = checkpoints(path).body("T", found.values["said"])
            assert msgspec.msgpack.decode(body) == [said]
        with pytest.raises(tracefork.UsageError, match=r"first\.tape, second\.tape"):
            checkpoints(tape.with_name("third.tape"))


def test_two_files_of_one_name_are_refused(tape: Path) -> None:
    """The tape could not tell them apart."""
    (tape.parent / "other").mkdir()
    with tracefork.record(tape):
        put(tape.with_name("threads.tape"), ["one"])
        with pytest.raises(tracefork.UsageError, match=r"called threads\.tape"):
            put(tape.parent / "other" / "threads.tape", ["two"])


def test_a_thread_that_is_copied_is_copied_in_the_replay(tape: Path) -> None:
    """Its source is on the tape although the agent did not read it."""
    threads = tape.with_name("threads.tape")
    put(threads, ["before"])
    for scope in (tracefork.record(tape), tracefork.replay(tape)):
        with scope:
            checkpoints(threads).copy_thread("T", "U")
            copied = checkpoints(threads).find("U", "")
            assert copied is not None
            body = checkpoints(threads).body("U", copied.values["said"])
            assert msgspec.msgpack.decode(body) == ["before"]
    with tracefork.Tape.open(tape) as opened:
        assert [one.thread for one in recorded_checkpoints(opened)] == ["U"]


def test_a_tape_can_be_redacted_later(tape: Path) -> None:
    """Events then refer to the redacted values."""
    with tracefork.record(tape):
        put(tape, [f"the word is {SECRET}"])
    assert SECRET in str(value_of(tape))
    target = tape.with_name("redacted.tape")
    with tracefork.Tape.open(tape) as opened:
        change = Redaction(Masks.read([f"re:{SECRET}"]))
        rewrite(opened, target, change)
    assert "the word is" in str(value_of(target))
    assert SECRET not in str(value_of(target))
    assert sum(change.found.values()) == 1


def test_a_sealed_tape_encrypts_checkpoints(tape: Path, own_key: str) -> None:
    """No part of a state is in the file as plain text."""
    with tracefork.record(tape, mode="sealed", seal_to=[own_key]):
        put(tape, ["hello in a state"])
    assert b"hello in a state" not in tape.read_bytes()
    assert value_of(tape) == ["hello in a state"]


def test_writes_are_on_the_tape_with_their_values(tape: Path) -> None:
    """They are returned with their checkpoint."""
    bodies: dict[str, bytes] = {}
    write = SavedWrite("T", "", "1", "task", 0, "said", stored("one", bodies))
    with tracefork.record(tape):
        put(tape, ["hello"])
        checkpoints(tape).put_writes([write], bodies)
    with tracefork.replay(tape):
        checkpoints(tape).called("look", "T", None)
        assert checkpoints(tape).writes("T", "", "1") == [write]
        assert checkpoints(tape).body("T", write.value) == msgspec.msgpack.encode("one")


def test_checkpoints_are_listed_and_shown(tape: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The end of an id is enough. Values are JSON; objects of the framework are plain data."""
    doc = msgspec.msgpack.Ext(5, msgspec.msgpack.encode(["app", "Doc", {"text": "hi"}]))
    with tracefork.record(tape):
        put(tape, [doc], "aaaa-1111")
        put(tape, ["later"], "aaaa-2222", "aaaa-1111")
    assert main(["show", str(tape), "--checkpoints", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["checkpoints"]
    assert [(one["id"], one["parent"]) for one in listed] == [
        ("aaaa-1111", None),
        ("aaaa-2222", "aaaa-1111"),
    ]
    assert main(["show", str(tape), "--checkpoint", "1111", "--json"]) == 0
    state = json.loads(capsys.readouterr().out)["checkpoint"]["values"]
    assert state == {"said": [{"type": "app.Doc", "value": {"text": "hi"}}]}
    assert main(["show", str(tape), "--checkpoint", "aa"]) == 2
    assert "no checkpoint" in capsys.readouterr().err

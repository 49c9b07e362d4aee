"""A sealed tape can be read only by those it was sealed for."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from pyrage import x25519

from tracefork_core import Tape, TapeError, UsageError, record, replay
from tracefork_core.tape import StepRecord, TapeWriter, journal
from tracefork_core.tape.digest import sha256
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import (
    STEP,
    ExchangeAside,
    ExchangePayload,
    FailureRecord,
    Receipt,
    RequestRecord,
    ResponseRecord,
)
from tracefork_core.tape.schema import Mode
from tracefork_core.tape.sealing import Key, new_key, unwrap
from tracefork_testkit import ProviderServer

PLANTED = b"the-plaintext-nobody-may-see"
WORD = PLANTED.decode()


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start without an identity and without a passphrase."""
    monkeypatch.delenv("TRACEFORK_IDENTITY", raising=False)
    monkeypatch.delenv("TRACEFORK_PASSPHRASE", raising=False)


class Reader:
    """A reader with an age identity."""

    def __init__(self, file: Path) -> None:
        identity = x25519.Identity.generate()
        self.public = str(identity.to_public())
        self.file = file
        file.write_text(f"# created: today\n# public key: {self.public}\n{identity}\n")


@pytest.fixture
def readers(tmp_path_factory: pytest.TempPathFactory) -> list[Reader]:
    folder = tmp_path_factory.mktemp("identities")
    return [Reader(folder / name) for name in ("ada", "bob", "eve")]


def steps_of_a_recording(path: Path, key: Key | None) -> Iterator[TapeWriter]:
    """Record a run with planted words in all its parts, and stop after each step."""
    mode: Mode = "safe" if key is None else "sealed"
    writer = TapeWriter(path, describe(), mode=mode, key=key)
    yield writer
    writer.note(STEP, aside=StepRecord(WORD, "model", WORD, detail={"prompt": WORD}))
    for n in range(12):
        asked, answer = b'{"prompt":"%b %d"}' % (PLANTED, n), PLANTED * 300
        request = RequestRecord("POST", f"http://{WORD}.test/{n}", [("x", WORD)], sha256(asked))
        aside = ExchangeAside("main", "test", 0, step=WORD, caller=WORD, sent=[("y", WORD)])
        writer.begin(ExchangePayload(n, request), aside, asked)
        yield writer
        head = ResponseRecord(200, WORD, [("z", WORD)], "")
        writer.head(ExchangePayload(n, request, head), aside)
        for turn in range(3):
            writer.chunk(n, turn, answer[turn * 2800 : (turn + 1) * 2800])
            yield writer
        failure = FailureRecord(WORD, WORD)
        head = ResponseRecord(200, WORD, [("z", WORD)], sha256(answer))
        aside.sizes, aside.end = [2800, 2800, 2800], "eof"
        writer.end(ExchangePayload(n, request, head, failure), aside, answer)
        yield writer
    writer.close(Receipt("", 0, strays=[WORD], subprocesses=[WORD], outcome=WORD))
    yield writer


def recorded(path: Path, key: Key | None) -> Path:
    """Record the whole run."""
    for _ in steps_of_a_recording(path, key):
        pass
    return path


def shown_in(folder: Path) -> list[str]:
    """Return the files of a folder that contain the planted words in plain text."""
    return [file.name for file in sorted(folder.iterdir()) if PLANTED in file.read_bytes()]


def test_every_recipient_reads_a_sealed_tape(
    tape: Path, readers: list[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds what a safe tape would hold, under the same digest."""
    ada, bob, _ = readers
    recorded(tape, new_key([ada.public, bob.public]))
    with Tape.open(recorded(tape.with_name("safe.tape"), None)) as plain:
        digest, events = plain.digest, [event.kind for event in plain.events]
    for reader in (ada, bob):
        monkeypatch.setenv("TRACEFORK_IDENTITY", str(reader.file))
        with Tape.open(tape) as opened:
            assert (opened.mode, opened.complete, opened.digest) == ("sealed", True, digest)
            assert opened.receipt is not None
            assert opened.receipt.digest == digest
            assert [event.kind for event in opened.events] == events
            assert opened.exchanges[7].request_body == b'{"prompt":"%b 7"}' % PLANTED
            assert opened.exchanges[7].response_body == PLANTED * 300


def test_another_identity_does_not_open_a_sealed_tape(
    tape: Path, readers: list[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the identity as the reason."""
    ada, _, eve = readers
    recorded(tape, new_key([ada.public]))
    monkeypatch.setenv("TRACEFORK_IDENTITY", str(eve.file))
    with (
        Tape.open(tape) as opened,
        pytest.raises(TapeError, match="TRACEFORK_IDENTITY"),
    ):
        _ = opened.exchanges


def test_a_passphrase_opens_the_tape_sealed_with_it(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any other passphrase does not."""
    monkeypatch.setenv("TRACEFORK_PASSPHRASE", "four words are enough")
    recorded(tape, new_key())
    with Tape.open(tape) as opened:
        assert len(opened.exchanges) == 12
    monkeypatch.setenv("TRACEFORK_PASSPHRASE", "four other words")
    with Tape.open(tape) as opened, pytest.raises(TapeError, match="TRACEFORK_PASSPHRASE"):
        _ = opened.exchanges


def test_a_passphrase_does_not_open_a_tape_sealed_for_keys(
    tape: Path, readers: list[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key does not open one sealed with a passphrase either; both raise one clear error."""
    recorded(tape, new_key([readers[0].public]))
    monkeypatch.setenv("TRACEFORK_PASSPHRASE", "words")
    with Tape.open(tape) as opened, pytest.raises(TapeError, match="TRACEFORK_PASSPHRASE"):
        _ = opened.exchanges
    other = recorded(tape.with_name("other.tape"), new_key())
    monkeypatch.setenv("TRACEFORK_IDENTITY", str(readers[0].file))
    with (
        Tape.open(other) as opened,
        pytest.raises(TapeError, match="TRACEFORK_IDENTITY"),
    ):
        _ = opened.exchanges


def test_without_a_key_a_sealed_tape_shows_only_its_mode(tape: Path, readers: list[Reader]) -> None:
    """Reading recorded content raises one clear error."""
    recorded(tape, new_key([readers[0].public]))
    with Tape.open(tape) as opened:
        assert (opened.mode, opened.complete, opened.key) == ("sealed", True, None)
        for part in ("exchanges", "digest", "steps", "draws", "environment", "receipt", "events"):
            with pytest.raises(TapeError, match="TRACEFORK_IDENTITY"):
                getattr(opened, part)
        with pytest.raises(TapeError, match=tape.name):
            opened.blob(sha256(b"any"))


def test_no_file_shows_the_content_at_any_step_of_a_recording(
    tape: Path, readers: list[Reader]
) -> None:
    """The control: the files of a safe tape show it."""
    for _ in steps_of_a_recording(tape, new_key([readers[0].public])):
        assert shown_in(tape.parent) == []
    safe = tape.parent / "safe"
    safe.mkdir()
    seen = {name for _ in steps_of_a_recording(safe / "run.tape", None) for name in shown_in(safe)}
    assert "run.tape-flight" in seen, "the control: what is in flight can be read"


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from test_sealing import new_key, steps_of_a_recording
for number, _ in enumerate(steps_of_a_recording(Path({tape!r}), new_key([{public!r}]))):
    if number == {after}:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("after", [0, 1, 3, 4, 38, 60])
def test_a_killed_recording_is_sealed_and_complete(
    tape: Path, readers: list[Reader], monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """After kill -9 others can read nothing, and recipients lose nothing."""
    values = {"folder": str(Path(__file__).parent), "tape": str(tape), "after": after}
    code = KILLED.format(**values, public=readers[0].public)
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert shown_in(tape.parent) == []
    with Tape.open(tape) as opened, pytest.raises(TapeError, match=tape.name):
        _ = opened.exchanges
    monkeypatch.setenv("TRACEFORK_IDENTITY", str(readers[0].file))
    ended, parts = divmod(after, 5)
    with Tape.open(tape) as opened:
        assert not opened.complete
        assert [one.end for one in opened.exchanges] == ["eof"] * ended + ["open"] * (parts > 0)
        if parts:
            last = opened.exchanges[-1]
            assert last.request_body == b'{"prompt":"%b %d"}' % (PLANTED, ended)
            assert last.response_body == (PLANTED * 300)[: (parts - 1) * 2800]


def changed(tape: Path, change: Callable[[dict[int, list[bytes]]], None]) -> None:
    """Change the pieces (events, bodies) of rows, by number, and write valid checksums."""
    with closing(sqlite3.connect(tape)) as db, db:
        found = db.execute("SELECT seq, events, bodies FROM log").fetchall()
        rows = {seq: [events, bodies] for seq, events, bodies in found}
        change(rows)
        for seq, (events, bodies) in rows.items():
            crc = zlib.crc32(bodies, zlib.crc32(events))
            update = "UPDATE log SET crc = ?, events = ?, bodies = ? WHERE seq = ?"
            db.execute(update, (crc, events, bodies, seq))


def swap(kind: int) -> Callable[[dict[int, list[bytes]]], None]:
    def change(rows: dict[int, list[bytes]]) -> None:
        one, other, *_ = [row for row in rows.values() if len(row[kind]) > 28]
        one[kind], other[kind] = other[kind], one[kind]

    return change


def across(rows: dict[int, list[bytes]]) -> None:
    """Swap the events and the bodies of a row."""
    rows[1].reverse()


def flip(place: int, kind: int = 0) -> Callable[[dict[int, list[bytes]]], None]:
    def change(rows: dict[int, list[bytes]]) -> None:
        data = bytearray(max((row[kind] for row in rows.values()), key=len))
        row = next(row for row in rows.values() if row[kind] == bytes(data))
        data[place] ^= 1
        row[kind] = bytes(data)

    return change


def torn(size: int) -> Callable[[dict[int, list[bytes]]], None]:
    def change(rows: dict[int, list[bytes]]) -> None:
        rows[1][0] = rows[1][0][:size]

    return change


@pytest.mark.parametrize(
    "change",
    [
        *(swap(0), swap(1), across),
        *(flip(0), flip(11), flip(12), flip(-1), flip(20, 1)),
        *(torn(40), torn(12), torn(11), torn(0)),
    ],
)
def test_a_changed_piece_does_not_decrypt(
    tape: Path,
    readers: list[Reader],
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[dict[int, list[bytes]]], None],
) -> None:
    """Changed, cut and moved pieces are found, even with valid checksums."""
    recording = steps_of_a_recording(tape, new_key([readers[0].public]))
    for _ in range(40):
        writer = next(recording)
    writer.abort()  # Rows are not packed yet: there are several of them.
    monkeypatch.setenv("TRACEFORK_IDENTITY", str(readers[0].file))
    with Tape.open(tape) as opened:
        assert all(exchange.response_body for exchange in opened.exchanges[:-1])
    changed(tape, change)
    with Tape.open(tape) as opened, pytest.raises(TapeError, match="decrypt"):
        assert [exchange.response_body for exchange in opened.exchanges] == []


def test_a_torn_sealed_journal_reads_up_to_the_tear(tape: Path, readers: list[Reader]) -> None:
    """A cut or changed piece ends it, and the pieces before it remain."""
    key = new_key([readers[0].public])
    recording = steps_of_a_recording(tape, key)
    for _ in range(5):
        writer = next(recording)
    file = tape.with_name(tape.name + "-flight")
    whole = file.read_bytes()
    (full,) = journal.read(tape, key.seal)
    writer.abort()
    assert len(full.chunks) == 3
    for stop in range(0, len(whole), 97):
        flipped = bytes([whole[stop] ^ 0x80])
        for data in (whole[:stop], whole[:stop] + flipped + whole[stop + 1 :]):
            file.write_bytes(data)
            for flight in journal.read(tape, key.seal):
                assert flight.chunks == full.chunks[: len(flight.chunks)]
                assert len(flight.chunks) < 3


def test_a_sealed_tape_replays_with_its_key_and_not_without(
    tape: Path,
    provider: ProviderServer,
    http: httpx2.Client,
    readers: list[Reader],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the key it answers like a safe tape; without, the agent makes no request."""

    def agent() -> bytes:
        return http.post(f"{provider.url}/echo", content=PLANTED).content

    with record(tape.with_name("safe.tape")) as safe:
        agent()
    with record(tape, mode="sealed", seal_to=[readers[0].public]) as sealed:
        agent()
    assert sealed.digest == safe.digest
    with pytest.raises(TapeError, match=tape.name), replay(tape):
        agent()
    monkeypatch.setenv("TRACEFORK_IDENTITY", str(readers[0].file))
    with replay(tape) as run:
        assert agent() == PLANTED
    assert run.digest == safe.digest
    assert len(provider.requests) == 2


def test_a_sealed_tape_without_readers_is_refused(tape: Path) -> None:
    """Without a recipient, or with an invalid one, the error comes before anything runs."""
    with pytest.raises(UsageError, match="TRACEFORK_PASSPHRASE"):
        new_key()
    with pytest.raises(UsageError, match="age1"):
        new_key(["age1nonsense"])


@pytest.mark.parametrize("text", ["", "AGE-SECRET-KEY-NONSENSE\n", None, "\ud800"])
def test_an_invalid_identity_file_raises_a_usage_error(
    tape: Path, readers: list[Reader], monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    """The error names a missing, empty or garbled file."""
    recorded(tape, new_key([readers[0].public]))
    file = tape.with_name("identity")
    if text is not None:
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
    monkeypatch.setenv("TRACEFORK_IDENTITY", str(file))
    with pytest.raises((UsageError, TapeError), match="TRACEFORK_IDENTITY"):
        Tape.open(tape)


@pytest.mark.parametrize("missing", ["pyrage", "cryptography"])
def test_without_the_seal_extra_the_error_names_it(
    tape: Path, readers: list[Reader], missing: str
) -> None:
    """A tape that is not sealed needs no extra."""
    recorded(tape, new_key([readers[0].public]))
    safe = recorded(tape.with_name("safe.tape"), None)
    code = f"""
    import sys
    sys.modules[{missing!r}] = None
    from tracefork_core import Tape, UsageError
    from tracefork_core.tape.sealing import new_key
    print(len(Tape.open({str(safe)!r}).exchanges))
    for act in (lambda: new_key(["age1"]), lambda: Tape.open({str(tape)!r})):
        try:
            act()
        except UsageError as error:
            print(error)
    """
    environment = {**os.environ, "TRACEFORK_IDENTITY": str(readers[0].file)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    needs = "tracefork: sealed tapes need an extra: pip install 'tracefork-core[seal]'."
    assert done.stdout.splitlines() == ["12", needs, needs]


def test_a_passphrase_that_takes_gigabytes_is_refused(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work factor lies on the tape; each step of it doubles the memory."""
    monkeypatch.setenv("TRACEFORK_PASSPHRASE", "open sesame")
    stanza = "age-encryption.org/v1\n-> scrypt ajMFur+EJLGasZOqfvY5Xw {}\n" + "A" * 43 + "\n---"
    for factor in (21, 30, 999_999_999):
        with pytest.raises(TapeError, match=f"work factor {factor}"):
            unwrap(stanza.format(factor).encode())
    assert unwrap(stanza.format(20).encode()) is None  # Refused by age: it has no real key.

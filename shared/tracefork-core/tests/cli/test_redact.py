"""`redact` writes the tape that mode safe would have recorded, and keeps the old tape."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tracefork_core import Tape
from tracefork_core.tape.sealing import new_key

from ..conftest import Alter
from . import leaky
from .conftest import Shell
from .leaky import KEY, OTHER_KEY, TOKEN, write

GOLDEN = Path(__file__).parents[1] / "tape" / "golden"


def redact(shell: Shell, *words: str, **environment: str) -> str:
    """Redact a tape and return the output."""
    done = shell.tracefork("redact", *words, **{"SERVICE_API_KEY": KEY, **environment})
    assert done.exit == 0, done.err
    return done.out


def digest_of(path: Path) -> str:
    """Return the digest of a tape."""
    with Tape.open(path) as tape:
        return tape.digest


def test_a_redacted_tape_is_what_safe_would_have_recorded(shell: Shell) -> None:
    """Digest, chunks, steps and receipt are the same."""
    leaky.tape(shell)
    leaky.tape(shell, "safe.tape", mode="safe")
    redact(shell, "raw.tape")
    with (
        Tape.open(shell.folder / "raw-redacted.tape") as redacted,
        Tape.open(shell.folder / "safe.tape") as safe,
    ):
        assert redacted.digest == safe.digest
        assert (redacted.mode, redacted.complete) == ("safe", True)
        for ours, theirs in zip(redacted.exchanges, safe.exchanges, strict=True):
            assert ours.chunks == theirs.chunks
            assert ours.request_headers == theirs.request_headers
            assert ours.aside.url == theirs.aside.url
        assert [step.detail for step in redacted.steps] == [step.detail for step in safe.steps]
        assert redacted.steps[-1].error == safe.steps[-1].error
        assert redacted.receipt is not None
        assert safe.receipt is not None
        assert redacted.receipt.secrets == safe.receipt.secrets
        assert redacted.environment is not None
        assert safe.environment is not None
        assert redacted.environment.masks == safe.environment.masks


def test_a_redacted_tape_replays_with_another_key(shell: Shell) -> None:
    """Control: the old tape does not, because the key is in the prompt."""
    leaky.tape(shell)
    redact(shell, "raw.tape", "-o", "clean.tape")
    words = ("leaky.py",)
    raw = shell.tracefork("replay", "raw.tape", *words, SERVICE_API_KEY=OTHER_KEY)
    assert raw.exit == 1
    assert "diverged after 0 of" in raw.err
    clean = shell.tracefork("replay", "--json", "clean.tape", *words, SERVICE_API_KEY=OTHER_KEY)
    assert clean.exit == 0, clean.err
    assert clean.document["bit_exact"] is True
    verified = shell.tracefork("verify", "clean.tape", *words, SERVICE_API_KEY=OTHER_KEY)
    assert verified.exit == 0, verified.err


def test_a_redacted_tape_holds_no_secret(shell: Shell) -> None:
    """scan finds none, the bytes show none, the new tape is undamaged, the old one unchanged."""
    leaky.tape(shell)
    before = (shell.folder / "raw.tape").read_bytes()
    redact(shell, "raw.tape")
    assert (shell.folder / "raw.tape").read_bytes() == before
    assert shell.tracefork("scan", "raw.tape", SERVICE_API_KEY=KEY).exit == 1
    assert shell.tracefork("scan", "raw-redacted.tape", SERVICE_API_KEY=KEY).exit == 0
    assert shell.tracefork("verify", "--integrity", "raw-redacted.tape").exit == 0
    assert KEY.encode() in before
    assert KEY.encode() not in (shell.folder / "raw-redacted.tape").read_bytes()


def test_the_report_shows_changes_digests_and_what_to_delete(shell: Shell) -> None:
    """It also says what a replay needs."""
    leaky.tape(shell)
    (shell.folder / "raw.tape.sig").write_text("a signature")
    said = redact(shell, "raw.tape").splitlines()
    old, new = (digest_of(shell.folder / name) for name in ("raw.tape", "raw-redacted.tape"))
    assert said == [
        "● redacted raw-redacted.tape · 4 of 5 exchanges changed",
        "  secrets masked: SERVICE_API_KEY \u00d710",
        f"  digest {new} (was {old})",
        "  replays with any value of SERVICE_API_KEY",
        "  next: rm raw.tape raw.tape.sig",
    ]
    done = shell.tracefork("redact", "--json", "raw.tape", SERVICE_API_KEY=KEY)
    assert done.document["redacted"].endswith("/raw-redacted-2.tape")
    facts = {name: done.document[name] for name in ("changed", "digest_before", "digest")}
    assert facts == {"changed": 4, "digest_before": old, "digest": new}
    assert done.document["replays_with_other"] == ["SERVICE_API_KEY"]
    assert KEY not in "\n".join(said) + done.out + done.err


def test_a_tape_without_secrets_keeps_its_digest(shell: Shell) -> None:
    """There is nothing to delete."""
    leaky.tape(shell, "safe.tape", mode="safe")
    said = redact(shell, "safe.tape")
    digest = digest_of(shell.folder / "safe.tape")
    assert "0 of 5 exchanges changed" in said
    assert f"digest {digest}" in said
    assert "rm" not in said
    assert digest_of(shell.folder / "safe-redacted.tape") == digest


def test_redact_overwrites_nothing(shell: Shell) -> None:
    """This includes the tape itself."""
    leaky.tape(shell)
    before = (shell.folder / "raw.tape").read_bytes()
    done = shell.tracefork("redact", "raw.tape", "-o", "raw.tape")
    assert (done.exit, "raw.tape already exists" in done.err) == (2, True)
    assert (shell.folder / "raw.tape").read_bytes() == before


def test_a_token_known_by_its_form_is_reported(shell: Shell) -> None:
    """If a variable holds it at replay, its placeholder is another one, and the run diverges."""
    assert shell.tracefork("record", "--mode", "raw", "agent.py", "--", TOKEN).exit == 0
    said = redact(shell, "agent.tape")
    assert "github_token" in said
    words = ("replay", "agent-redacted.tape", "agent.py", "--", TOKEN.replace("0A1b", "9z8Y"))
    assert shell.tracefork(*words).exit == 0
    assert shell.tracefork(*words, GITHUB_TOKEN=words[-1]).exit == 1


def test_a_replay_needs_the_patterns_of_the_redaction(shell: Shell) -> None:
    """A placeholder is not a secret, even if a pattern matches it."""
    assert shell.tracefork("record", "--mode", "raw", "agent.py", "--", "ID-12").exit == 0
    mask = r"--mask=re:(ID-\d+|[\w-]{20,60})"
    said = redact(shell, mask, "agent.tape")
    assert "replays with the same 1 pattern: give --mask re:… again" in said
    assert shell.tracefork("scan", mask, "agent-redacted.tape").exit == 0
    words = ("agent-redacted.tape", "agent.py", "--", "ID-13")
    without = shell.tracefork("replay", *words)
    assert (without.exit, "1 pattern" in without.err) == (2, True), without.err
    assert shell.tracefork("replay", mask, *words).exit == 0
    # The pattern of the tape is needed here too, or the new tape would lose it.
    again = shell.tracefork("redact", "agent-redacted.tape")
    assert (again.exit, "pattern" in again.err) == (2, True)


def test_a_redacted_cut_off_tape_stays_incomplete(shell: Shell) -> None:
    """Exchanges in flight are masked, and the journal must be deleted too."""
    shell.write(
        "cut.py",
        "import os, sys, httpx2\n"
        "url, key = os.environ['PROVIDER'], os.environ['SERVICE_API_KEY']\n"
        "httpx2.post(url + '/echo', content=f'first {key}')\n"
        "with httpx2.stream('POST', url + '/chunked?n=4', content=f'then {key}') as answer:\n"
        "    next(answer.iter_raw())\n"
        "    os.kill(os.getpid(), 9)\n",
    )
    shell.tracefork("record", "--mode", "raw", "cut.py", SERVICE_API_KEY=KEY)
    said = redact(shell, "cut.tape")
    assert "2 of 2 exchanges changed" in said
    assert "cut.tape-flight" in said.splitlines()[-1]
    with Tape.open(shell.folder / "cut-redacted.tape") as tape:
        assert not tape.complete
        assert [exchange.end for exchange in tape.exchanges] == ["eof", "open"]
        assert tape.exchanges[1].request_body == b"then tracefork-secret-SERVICE_API_KEY"
        assert len(tape.exchanges[1].chunks) == 1
    assert shell.tracefork("scan", "cut-redacted.tape", SERVICE_API_KEY=KEY).exit == 0
    assert list(shell.folder.glob("cut-redacted.tape-*")) == []


def test_unknown_events_and_fields_are_kept_and_masked(shell: Shell, alter: Alter) -> None:
    """A later version may have written them."""
    leaky.tape(shell)
    later = b'{"kind":"later","payload":{"deep":[{"text":"a %b","n":7}]},"aside":{"%b":1}}\n'

    def add(line: bytes) -> bytes:
        if b'"kind":"exchange"' in line:
            return line.replace(b'"aside":{', b'"aside":{"zeta":"%b",' % TOKEN.encode())
        return line + (later % (KEY.encode(), KEY.encode()) if b'"kind":"step"' in line else b"")

    alter(shell.folder / "raw.tape", events=add)
    redact(shell, "raw.tape")
    with Tape.open(shell.folder / "raw-redacted.tape") as tape:
        (event,) = [event for event in tape.events if event.kind == "later"]
        assert bytes(event.payload) == (
            b'{"deep":[{"n":7,"text":"a tracefork-secret-SERVICE_API_KEY"}]}'
        )
        assert bytes(event.aside) == b'{"tracefork-secret-SERVICE_API_KEY":1}'
        assert b'"zeta":"tracefork-secret-github_token"' in tape.exchanges[3].beside
    assert shell.tracefork("scan", "raw-redacted.tape", SERVICE_API_KEY=KEY).exit == 0


@pytest.mark.parametrize("name", ["format-1.tape", "format-1-cut-off.tape"])
def test_a_golden_tape_is_redacted(shell: Shell, name: str) -> None:
    """The redacted tape has today's format."""
    shutil.copy(GOLDEN / name, shell.folder)
    mask = ("--mask", "WORD")
    said = redact(shell, *mask, name, "-o", "new.tape", WORD="question 1")
    assert "3 of 5 exchanges changed" in said
    assert shell.tracefork("scan", *mask, "new.tape", WORD="question 1").exit == 0
    assert shell.tracefork("scan", *mask, name, WORD="question 1").exit == 1


def test_a_sealed_tape_stays_sealed(
    shell: Shell, own_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the same readers; others cannot redact it."""
    write(shell.folder / "sealed.tape", TOKEN.encode(), mode="sealed", key=new_key([own_key]))
    assert "1 of 1 exchange changed" in redact(shell, "sealed.tape")
    with Tape.open(shell.folder / "sealed-redacted.tape") as tape:
        assert tape.mode == "sealed"
        assert tape.exchanges[0].request_body == b"tracefork-secret-github_token"
    monkeypatch.delenv("TRACEFORK_IDENTITY")
    done = shell.tracefork("redact", "sealed.tape")
    assert (done.exit, "is sealed" in done.err) == (5, True)


def test_a_damaged_tape_is_not_redacted(shell: Shell) -> None:
    """An unreadable part may hold anything, so nothing is written."""
    leaky.tape(shell)
    data = bytearray((shell.folder / "raw.tape").read_bytes())
    data[len(data) // 2] ^= 1
    (shell.folder / "raw.tape").write_bytes(data)
    done = shell.tracefork("redact", "raw.tape", SERVICE_API_KEY=KEY)
    assert (done.exit, "is corrupt" in done.err) == (5, True)
    assert [path.name for path in shell.folder.glob("*.tape")] == ["raw.tape"]

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tracefork_core import Tape
from tracefork_core.cli.main import main
from tracefork_core.tape.signature import fingerprint

from .conftest import Shell


def key_pair(private: Path) -> tuple[Path, Path]:
    """Write a pair of keys as ssh-keygen does."""
    key, public = Ed25519PrivateKey.generate(), private.with_name(f"{private.name}.pub")
    pem, form = Encoding.PEM, PrivateFormat.OpenSSH
    private.write_bytes(key.private_bytes(pem, form, NoEncryption()))
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    public.write_bytes(line + b" me@here\n")
    return private, public


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """Return the files of a pair of keys, with names that need quotes."""
    return key_pair(tmp_path / "my key")


@pytest.fixture
def tape(recorded: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy a recorded tape into the current folder."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copy(recorded.folder / "plain.tape", tmp_path))


def verify(public: Path, *words: str) -> int:
    return main(["verify", "--signed-by", str(public), *words])


def test_sign_shows_digest_key_file_and_next_command(
    tape: Path, keys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """It also shows the fingerprint, and the path of the signature."""
    private, public = keys
    assert main(["sign", "plain.tape", "--key", str(private)]) == 0
    out = capsys.readouterr().out
    with Tape.open(tape) as opened:
        assert f"digest         {opened.digest}" in out
    assert f"key            {fingerprint(public.read_text())}" in out
    assert "signature      plain.tape.sig" in out
    assert f"tracefork verify --signed-by '{public}' plain.tape" in out
    assert verify(public, "plain.tape") == 0
    assert "✓ plain.tape" in capsys.readouterr().out


def test_the_documents_of_sign_and_verify_agree(
    tape: Path, keys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """They have everything that is printed."""
    private, public = keys
    assert main(["sign", "plain.tape", "--key", str(private), "--json"]) == 0
    signed = json.loads(capsys.readouterr().out)
    assert verify(public, "plain.tape", "--json") == 0
    checked = json.loads(capsys.readouterr().out)
    assert signed["signature"] == f"{tape}.sig"
    assert (checked["same_run"], checked["same_file"], checked["exit"]) == (True, True, 0)
    assert {name: signed[name] for name in ("digest", "fingerprint")} == {
        name: checked[name] for name in ("digest", "fingerprint")
    }
    assert public.read_text().startswith(signed["key"])


def test_a_file_that_was_not_signed_is_different(
    tape: Path, keys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """It holds the signed run, so the exit code is 1."""
    private, public = keys
    assert main(["sign", "plain.tape", "--key", str(private)]) == 0
    with tape.open("r+b") as file:
        file.seek(96)  # The version of SQLite that wrote the file last: no record holds it.
        file.write(b"\0\0\0\1")
    assert verify(public, "plain.tape") == 1
    assert "✗ plain.tape" in capsys.readouterr().out


def test_only_complete_tapes_are_signed(
    tape: Path, keys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """No signature is written for a recording that was cut off."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tape)) as db, db:
        db.execute("UPDATE meta SET value = 'recording' WHERE key = 'state'")
    assert main(["sign", "plain.tape", "--key", str(keys[0])]) == 2
    assert "incomplete" in capsys.readouterr().err
    assert not os.path.lexists(f"{tape}.sig")


def test_a_tape_is_not_signed_with_a_public_key(
    tape: Path, keys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The error is one line, without a traceback."""
    assert main(["sign", str(tape), "--key", str(keys[1])]) == 2
    err = capsys.readouterr().err
    assert ".pub" in err
    assert "Traceback" not in err


def test_an_unsigned_tape_and_a_foreign_signature_have_different_exit_codes(
    tape: Path, keys: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither may pass for verified."""
    private, public = keys
    assert verify(public, "plain.tape") == 2
    assert "plain.tape.sig" in capsys.readouterr().err
    other, _ = key_pair(tmp_path / "other")
    assert main(["sign", "plain.tape", "--key", str(other)]) == 0
    assert verify(public, "plain.tape") == 5
    assert "is not signed by" in capsys.readouterr().err
    assert main(["sign", "plain.tape", "--key", str(private)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main(["sign", "plain.tape", "--key", str(private), "--overwrite"]) == 0
    assert verify(public, "plain.tape") == 0

"""A signature proves which key signed a tape, and covers only that tape."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tracefork_core import Tape, TapeError, UsageError
from tracefork_core.tape import TapeWriter
from tracefork_core.tape.digest import canonical, sha256
from tracefork_core.tape.environment import describe
from tracefork_core.tape.event import (
    ExchangeAside,
    ExchangePayload,
    Receipt,
    RequestRecord,
    ResponseRecord,
)
from tracefork_core.tape.signature import Signature, Statement, fingerprint, sign, verify

BITS = 2048
OPENSSH_IS_HERE = pytest.mark.skipif(
    not shutil.which("ssh-keygen"),
    reason="ssh-keygen is not installed; keys of its format are tested all the same",
)
KINDS = ["openssh", "pem", pytest.param("ssh-keygen", marks=OPENSSH_IS_HERE)]
PEM = (form.Encoding.PEM, form.PrivateFormat.PKCS8)
OPENSSH = (form.Encoding.PEM, form.PrivateFormat.OpenSSH)


def keys(folder: Path, name: str = "me", *, how: str = "openssh") -> tuple[Path, Path]:
    """Write a new pair of keys and return both files."""
    private, public = folder / name, folder / f"{name}.pub"
    if how == "ssh-keygen":
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(private)]
        subprocess.run(command, check=True)
        return private, public
    key = Ed25519PrivateKey.generate()
    encoding, layout = PEM if how == "pem" else OPENSSH
    private.write_bytes(key.private_bytes(encoding, layout, form.NoEncryption()))
    shape = (
        (form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        if how == "pem"
        else (form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    )
    public.write_bytes(key.public_key().public_bytes(*shape))
    return private, public


def record(path: Path, *answers: bytes, caller: str = "agent.py:1") -> str:
    """Record a run of a few exchanges and return its digest."""
    writer = TapeWriter(path, describe())
    for n, answer in enumerate(answers):
        asked = RequestRecord("GET", f"http://provider.test/{n}", [], sha256(b""))
        payload = ExchangePayload(n, asked, ResponseRecord(200, "OK", [], sha256(answer)))
        aside = ExchangeAside("main", "test", 0, caller=caller, sizes=[len(answer)], end="eof")
        writer.begin(payload, aside, b"")
        writer.end(payload, aside, answer)
    return writer.close(Receipt("", 0)).digest


@pytest.fixture
def signed(tape: Path, tmp_path: Path) -> tuple[str, Path]:
    """Record a tape and sign it; return its digest and the public key."""
    private, public = keys(tmp_path)
    digest = record(tape, b"one", b"two")
    sign(tape, digest, private)
    return digest, public


def digest_of(tape: Path) -> str:
    with Tape.open(tape) as opened:
        return opened.digest


@pytest.mark.parametrize(
    "how", ["openssh", "pem", pytest.param("ssh-keygen", marks=OPENSSH_IS_HERE)]
)
def test_a_signature_verifies_with_its_key(tape: Path, tmp_path: Path, how: str) -> None:
    """This holds for OpenSSH and PEM keys, which have their usual fingerprint."""
    private, public = keys(tmp_path, how=how)
    digest = record(tape, b"one")
    made = sign(tape, digest, private)
    verdict = verify(tape, digest, public)
    assert (verdict.file, verdict.key) == (True, made.key)
    assert verdict.statement == Statement(digest, sha256(tape.read_bytes()), "tracefork tape")
    if how == "ssh-keygen":
        listed = subprocess.run(["ssh-keygen", "-lf", public], capture_output=True, check=True)
        assert fingerprint(made.key) in listed.stdout.decode()


def test_every_changed_byte_of_a_tape_is_found(tape: Path, signed: tuple[str, Path]) -> None:
    """With any byte changed, the file is not the signed one."""
    digest, key = signed
    whole = tape.read_bytes()
    assert verify(tape, digest, key).file
    for place in range(0, len(whole), len(whole) // 97):
        tape.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert not verify(tape, digest, key).file


def test_every_changed_byte_of_a_signature_is_found(tape: Path, signed: tuple[str, Path]) -> None:
    """This covers the signature, its statement and its form."""
    digest, key = signed
    file = tape.with_name(tape.name + ".sig")
    whole = file.read_bytes()
    name = whole.index(b"ssh-ed25519"), whole.index(b'","signature"')
    for place in range(len(whole) - 1):
        if name[0] <= place < name[1]:
            continue  # The key it names decides nothing: the one that is given does.
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(TapeError, match=tape.name):
            verify(tape, digest, key)


def test_the_key_that_a_signature_names_decides_nothing(
    tape: Path, tmp_path: Path, signed: tuple[str, Path]
) -> None:
    """A forged signature may name a trusted key."""
    digest, key = signed
    private, _ = keys(tmp_path, "mallory")
    sign(tape, digest, private, overwrite=True)
    file = tape.with_name(tape.name + ".sig")
    forged = msgspec.json.decode(file.read_bytes(), type=Signature)
    forged = msgspec.structs.replace(forged, key=key.read_text())
    file.write_bytes(canonical(forged) + b"\n")
    with pytest.raises(TapeError, match=r"me\.pub"):
        verify(tape, digest, key)


def test_another_key_does_not_verify(tape: Path, tmp_path: Path, signed: tuple[str, Path]) -> None:
    """The message names both keys by their fingerprints."""
    digest, mine = signed
    _, other = keys(tmp_path, "other")
    with pytest.raises(TapeError) as raised:
        verify(tape, digest, other)
    assert fingerprint(mine.read_text()) in str(raised.value)
    assert fingerprint(other.read_text()) in str(raised.value)


def test_a_tape_that_replaced_a_signed_one_does_not_verify(
    tape: Path, signed: tuple[str, Path]
) -> None:
    """The signature is of another run."""
    _, key = signed
    tape.unlink()
    with pytest.raises(TapeError, match=tape.name):
        verify(tape, record(tape, b"one", b"three"), key)


def test_a_new_recording_of_the_signed_run_is_not_the_signed_file(
    tape: Path, signed: tuple[str, Path]
) -> None:
    """The run verifies, and the verdict says that the file is another one."""
    digest, key = signed
    tape.unlink()
    assert record(tape, b"one", b"two", caller="elsewhere.py:7") == digest
    verdict = verify(tape, digest, key)
    assert (verdict.statement.digest, verdict.file) == (digest, False)


def test_a_log_that_is_slipped_in_beside_a_signed_tape_is_refused(
    tape: Path, signed: tuple[str, Path]
) -> None:
    """SQLite would read it as part of the tape, and no signature covers it."""
    digest, key = signed
    log = tape.with_name(tape.name + "-wal")
    log.write_bytes(b"")
    assert verify(tape, digest, key).file
    log.write_bytes(b"\x37\x7f\x06\x82 and pages")
    with pytest.raises(UsageError, match=r"run\.tape-wal"):
        verify(tape, digest, key)
    with pytest.raises(UsageError, match=r"run\.tape-wal"):
        sign(tape, digest, key.with_suffix(""))


def test_a_signature_about_something_else_does_not_count(tape: Path, tmp_path: Path) -> None:
    """A key's signature for another purpose does not pass for that of a tape."""
    private, public = keys(tmp_path)
    digest = record(tape, b"one")
    statement = Statement(digest, sha256(tape.read_bytes()), about="a letter")
    key = form.load_ssh_private_key(private.read_bytes(), password=None)
    assert isinstance(key, Ed25519PrivateKey)
    told = base64.b64encode(key.sign(canonical(statement))).decode()
    made = canonical(Signature(statement, "", told)) + b"\n"
    tape.with_name(tape.name + ".sig").write_bytes(made)
    with pytest.raises(TapeError, match="a letter"):
        verify(tape, digest, public)


def locked(folder: Path) -> Path:
    key = Ed25519PrivateKey.generate().private_bytes(*PEM, form.BestAvailableEncryption(b"x"))
    (folder / "locked").write_bytes(key)
    return folder / "locked"


def locked_by_openssh(folder: Path) -> Path:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(folder / "ssh")]
    subprocess.run(command, check=True)
    return folder / "ssh"


def of_rsa(folder: Path) -> Path:
    key = rsa.generate_private_key(65537, BITS)
    (folder / "rsa").write_bytes(key.private_bytes(*OPENSSH, form.NoEncryption()))
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    (folder / "rsa.pub").write_bytes(public)
    return folder / "rsa"


def garbage(folder: Path) -> Path:
    (folder / "garbage").write_bytes(b"OPENSSH \xff\x00 garbage")
    return folder / "garbage"


def text(folder: Path) -> Path:
    (folder / "text").write_text("my key\n")
    return folder / "text"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (locked, "passphrase"),
        pytest.param(locked_by_openssh, "passphrase", marks=OPENSSH_IS_HERE),
        (of_rsa, "Ed25519"),
        (garbage, "private key"),
        (text, "private key"),
        (lambda folder: folder, "cannot read"),
        (lambda folder: folder / "nowhere", "cannot read"),
        (lambda folder: keys(folder)[1], "private key"),
    ],
)
def test_a_key_that_cannot_sign_raises_a_usage_error(
    tape: Path, tmp_path: Path, make: Callable[[Path], Path], reason: str
) -> None:
    """The message says what is wrong with the key, and no signature is written."""
    digest = record(tape, b"one")
    with pytest.raises(UsageError, match=reason):
        sign(tape, digest, make(tmp_path))
    assert not tape.with_name(tape.name + ".sig").exists()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda folder: of_rsa(folder).with_suffix(".pub"), "Ed25519"),
        (lambda folder: keys(folder, "new")[0], ".pub"),
        (lambda folder: keys(folder, "new", how="pem")[0], ".pub"),
        (garbage, "public key"),
        (lambda folder: folder, "cannot read"),
        (lambda folder: folder / "nowhere", "cannot read"),
    ],
)
def test_a_key_that_cannot_verify_raises_a_usage_error(
    tape: Path, tmp_path: Path, signed: tuple[str, Path], make: Callable[[Path], Path], reason: str
) -> None:
    """The message says what is wrong with the key."""
    with pytest.raises(UsageError, match=reason):
        verify(tape, signed[0], make(tmp_path))


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"[]", b"{}", b"[" * 100_000, b'{"statement":{"digest":1}}']
)
def test_a_malformed_signature_raises_a_tape_error(
    tape: Path, signed: tuple[str, Path], data: bytes
) -> None:
    """A stranger may put any file beside a tape."""
    tape.with_name(tape.name + ".sig").write_bytes(data)
    with pytest.raises(TapeError, match=r"run\.tape\.sig"):
        verify(tape, *signed)


def test_another_signature_is_not_overwritten_without_the_flag(
    tape: Path, tmp_path: Path, signed: tuple[str, Path]
) -> None:
    """Signing again with the same key changes nothing; another key needs the flag."""
    digest, mine = signed
    file = tape.with_name(tape.name + ".sig")
    before = file.read_bytes()
    sign(tape, digest, mine.with_suffix(""))
    assert file.read_bytes() == before
    other, _ = keys(tmp_path, "other")
    with pytest.raises(UsageError, match=file.name):
        sign(tape, digest, other)
    assert file.read_bytes() == before


def test_without_the_seal_extra_signing_names_it(tape: Path, tmp_path: Path) -> None:
    """Opening a tape needs no extra."""
    private, public = keys(tmp_path)
    digest = record(tape, b"one")
    code = f"""
import sys
from pathlib import Path
sys.modules["cryptography"] = None
from tracefork_core import Tape, UsageError
from tracefork_core.tape import signature
tape = Path({str(tape)!r})
print(Tape.open(tape).digest == {digest!r})
for verb, key in ((signature.sign, {str(private)!r}), (signature.verify, {str(public)!r})):
    try:
        verb(tape, {digest!r}, Path(key))
    except UsageError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    needs = "tracefork: signatures need an extra: pip install 'tracefork-core[seal]'."
    assert done.stdout.splitlines() == ["True", needs, needs]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_is_not_read_as_a_signature(tmp_path: Path, kind: str) -> None:
    """Reading a pipe would wait for a writer, and a device never ends."""
    tape = tmp_path / "run.tape"
    digest = TapeWriter(tape, describe()).close(Receipt(digest="", exchanges=0)).digest
    private, public = keys(tmp_path)
    beside = Path(f"{tape}.sig")
    if kind == "pipe":
        os.mkfifo(beside)
    else:
        beside.symlink_to("/dev/zero")
    with pytest.raises(TapeError, match=r"run\.tape\.sig"):
        verify(tape, digest, public)
    with pytest.raises(TapeError, match=r"run\.tape\.sig"):
        sign(tape, digest, private)
    beside.unlink()
    sign(tape, digest, private)
    verify(tape, digest, public)

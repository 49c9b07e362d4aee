"""Detached signatures: the holder of a key vouches for a tape.

A signature lies beside its tape in `<tape>.sig`. It is an Ed25519 signature of a statement: the
digest of the run, and the sha256 of the file. Keys are in the formats that people have: OpenSSH
(`ssh-keygen -t ed25519`) or PEM.
"""

from __future__ import annotations

import base64
import errno
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tracefork_core.errors import TapeError, UsageError
from tracefork_core.tape.digest import canonical
from tracefork_core.tape.schema import beside

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

SUFFIX = ".sig"
_ABOUT = "tracefork tape"
_MAKES_ONE = "`ssh-keygen -t ed25519 -N '' -f tapes.key` makes one."
_LONGEST = 64 * 1024
"""The most bytes that are read from a key or a signature."""


class Statement(msgspec.Struct, frozen=True):
    """What is signed: the digest of the run, and the sha256 of the tape's file."""

    digest: str
    file: str
    about: str


class Signature(msgspec.Struct, frozen=True):
    """A statement, the public key (in OpenSSH's format) and the signature, in base64."""

    statement: Statement
    key: str
    signature: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a valid signature vouches for; `file` is false if only the run is the same."""

    statement: Statement
    key: str
    file: bool


def sign(path: Path, digest: str, key: Path, *, overwrite: bool = False) -> Signature:
    """Sign a closed tape with a private key, and write the signature beside it.

    Raises:
        UsageError: the key cannot be used, the tape is in use, another signature exists and
            `overwrite` is false, or the extra is not installed.
        TapeError: the signature cannot be written.
    """
    private = _private(key)
    _check_is_alone(path)
    statement = Statement(digest, _sha256(path), _ABOUT)
    signed = private.sign(canonical(statement))
    public = _openssh(private.public_key())
    signature = Signature(statement, public, base64.b64encode(signed).decode())
    _write(beside(path, SUFFIX), canonical(signature) + b"\n", overwrite=overwrite)
    return signature


def verify(path: Path, digest: str, key: Path) -> Verdict:
    """Verify the signature beside a closed tape against a public key.

    Raises:
        UsageError: no signature exists, the tape is in use, the key cannot be used, or the extra
            is not installed.
        TapeError: the signature is malformed, or belongs to another key or another run.
    """
    public = _public(key)
    from cryptography.exceptions import InvalidSignature

    _check_is_alone(path)
    signed, signature = _signature(beside(path, SUFFIX))
    try:
        public.verify(signature, canonical(signed.statement))
    except InvalidSignature as error:
        yours, its = fingerprint(_openssh(public)), fingerprint(signed.key)
        raise TapeError(
            f"tracefork: {path} is not signed by {key}: the signature is not valid for {yours}, "
            f"and names the key {its}."
        ) from error
    if signed.statement.about != _ABOUT:
        raise TapeError(
            f"tracefork: the signature of {path} is about {signed.statement.about!r}, not "
            f"{_ABOUT!r}."
        )
    if signed.statement.digest != digest:
        raise TapeError(
            f"tracefork: the signature of {path} belongs to another run: it signs digest "
            f"{signed.statement.digest}, and the tape has {digest}."
        )
    return Verdict(signed.statement, _openssh(public), signed.statement.file == _sha256(path))


def fingerprint(key: str) -> str:
    """Return the fingerprint of a public key, as `ssh-keygen -l` prints it."""
    try:
        blob = base64.b64decode(key.split()[1], validate=True)
    except (ValueError, IndexError):
        return "(not a public key)"
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _check_is_alone(path: Path) -> None:
    """Refuse a tape with content outside its file: only the file is signed."""
    log = beside(path, "-wal")
    if log.exists() and log.stat().st_size:
        raise UsageError(
            f"tracefork: {path} is in use, or was not closed: part of it is in {log.name}, and a "
            "signature covers one file. Close the recording first."
        )


def _signature(path: Path) -> tuple[Signature, bytes]:
    """Return the signature in a file, and its bytes."""
    try:
        data = _content(path)
        signed = msgspec.json.decode(data, type=Signature)
        signature = base64.b64decode(signed.signature, validate=True)
    except FileNotFoundError as error:
        raise UsageError(
            f"tracefork: {path} does not exist. `tracefork sign` makes a signature."
        ) from error
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise TapeError(f"tracefork: {path} is not a signature: {error}.") from error
    # Only one spelling is valid: a field that is not understood must not seem signed.
    as_written = msgspec.structs.replace(signed, signature=base64.b64encode(signature).decode())
    if canonical(as_written) + b"\n" != data:
        raise TapeError(
            f"tracefork: {path} is not a signature: it is not canonical JSON with the known fields."
        )
    return signed, signature


def _write(path: Path, data: bytes, *, overwrite: bool) -> None:
    try:
        if path.exists() and not overwrite and _content(path) != data:
            raise UsageError(
                f"tracefork: {path} already exists, with another signature. Use --overwrite to "
                "replace it."
            )
        path.write_bytes(data)
    except OSError as error:
        raise TapeError(f"tracefork: cannot write {path}: {error}.") from error


def _private(path: Path) -> Ed25519PrivateKey:
    with _needs_cryptography():
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    data = _read(path)
    try:
        if b"OPENSSH" in data:
            key: object = serialization.load_ssh_private_key(data, password=None)
        else:
            key = serialization.load_pem_private_key(data, password=None)
    except TypeError as error:
        raise UsageError(
            f"tracefork: {path} has a passphrase, which tracefork does not ask for. Use a key "
            "without one (`ssh-keygen -t ed25519 -N ''`)."
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(
            f"tracefork: {path} is not a private key in OpenSSH or PEM format. {_MAKES_ONE}"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"tracefork: {path} is not an Ed25519 key. {_MAKES_ONE}")
    return key


def _public(path: Path) -> Ed25519PublicKey:
    with _needs_cryptography():
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    data = _read(path)
    if b"PRIVATE KEY" in data:
        raise UsageError(f"tracefork: {path} is a private key. Verify with the public key (.pub).")
    try:
        if data.startswith(b"ssh-"):
            key: object = serialization.load_ssh_public_key(data)
        else:
            key = serialization.load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UsageError(
            f"tracefork: {path} is not a public key. Name the .pub file of a key, or a PEM file."
        ) from error
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"tracefork: {path} is not an Ed25519 key. {_MAKES_ONE}")
    return key


def _openssh(key: Ed25519PublicKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


@contextmanager
def _needs_cryptography() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise UsageError(
            "tracefork: signatures need an extra: pip install 'tracefork-core[seal]'."
        ) from error


def _read(path: Path) -> bytes:
    try:
        return _content(path)
    except OSError as error:
        raise UsageError(
            f"tracefork: cannot read the key {path}: {error.strerror}. {_MAKES_ONE}"
        ) from error


def _content(path: Path) -> bytes:
    """Read a small file. Other kinds are refused: a pipe would block, a device may never end."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a file")
    with path.open("rb") as file:
        return file.read(_LONGEST)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

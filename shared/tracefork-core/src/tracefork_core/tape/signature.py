"""Detached signatures: who says that a tape is what it is.

A signature lies beside its tape in `<tape>.sig`. It is an Ed25519 signature of a statement: the
digest of the run, and the sha256 of the file. Keys are those that people have: OpenSSH's
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
_MAKES_ONE = "ssh-keygen -t ed25519 -N '' -f tapes.key makes one."
_LONGEST = 64 * 1024
"""Bytes of the longest key or signature that is read."""


class Statement(msgspec.Struct, frozen=True):
    """What is signed: the digest of the run, and the sha256 of the file that holds it."""

    digest: str
    file: str
    about: str


class Signature(msgspec.Struct, frozen=True):
    """A statement, the public key (as OpenSSH spells it) and the signature, in base64."""

    statement: Statement
    key: str
    signature: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a valid signature says; `file` is false where the run was signed in another file."""

    statement: Statement
    key: str
    file: bool


def sign(path: Path, digest: str, key: Path, *, overwrite: bool = False) -> Signature:
    """Sign a closed tape with a private key, and leave the signature beside it.

    Raises:
        UsageError: the key cannot be used, the tape is in use, it has another signature already
            and `overwrite` is false, or the extra is not installed.
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
        UsageError: there is no signature, the tape is in use, the key cannot be used, or the extra
            is not installed.
        TapeError: the signature is of another key or another run, or is none.
    """
    public = _public(key)
    from cryptography.exceptions import InvalidSignature

    _check_is_alone(path)
    found, signature = _found(beside(path, SUFFIX))
    try:
        public.verify(signature, canonical(found.statement))
    except InvalidSignature as error:
        yours, its = fingerprint(_openssh(public)), fingerprint(found.key)
        raise TapeError(
            f"tracefork: {path} is not signed by {key}: its signature names the key {its} and does "
            f"not hold for yours, {yours}."
        ) from error
    if found.statement.about != _ABOUT:
        raise TapeError(
            f"tracefork: the signature is about {found.statement.about!r}, not a {_ABOUT}."
        )
    if found.statement.digest != digest:
        raise TapeError(
            f"tracefork: the signature is of another run: it says {found.statement.digest}, the "
            f"tape holds {digest}."
        )
    return Verdict(found.statement, _openssh(public), found.statement.file == _sha256(path))


def fingerprint(key: str) -> str:
    """Return the fingerprint of a public key, as `ssh-keygen -l` spells it."""
    try:
        blob = base64.b64decode(key.split()[1], validate=True)
    except (ValueError, IndexError):
        return "that is none"
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _check_is_alone(path: Path) -> None:
    """Refuse a tape whose content does not all lie in its file: only the file is signed."""
    log = beside(path, "-wal")
    if log.exists() and log.stat().st_size:
        raise UsageError(
            f"tracefork: {path} is in use, or was not closed: a part of it lies in {log.name}, "
            "and a signature covers one file."
        )


def _found(path: Path) -> tuple[Signature, bytes]:
    """Return what lies in the file of a signature."""
    try:
        data = _content(path)
        found = msgspec.json.decode(data, type=Signature)
        signature = base64.b64decode(found.signature, validate=True)
    except FileNotFoundError as error:
        raise UsageError(
            f"tracefork: no signature at {path}. `tracefork sign` makes one."
        ) from error
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise TapeError(f"tracefork: {path} is no signature: {error}.") from error
    # One spelling alone: what is not understood may not be taken for signed.
    as_written = msgspec.structs.replace(found, signature=base64.b64encode(signature).decode())
    if canonical(as_written) + b"\n" != data:
        raise TapeError(f"tracefork: {path} is no signature: it is not spelled as one.")
    return found, signature


def _write(path: Path, data: bytes, *, overwrite: bool) -> None:
    try:
        if path.exists() and not overwrite and _content(path) != data:
            raise UsageError(
                f"tracefork: {path} is another signature and nothing is overwritten unasked. "
                "Pass --overwrite to replace it."
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
            f"tracefork: {path} is locked with a passphrase, and I ask for none. Sign with a key "
            "without one (ssh-keygen -t ed25519 -N '')."
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(f"tracefork: {path} is no private key I can use. {_MAKES_ONE}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"tracefork: {path} is no Ed25519 key. {_MAKES_ONE}")
    return key


def _public(path: Path) -> Ed25519PublicKey:
    with _needs_cryptography():
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    data = _read(path)
    if b"PRIVATE KEY" in data:
        raise UsageError(f"tracefork: {path} is a private key; verify with the public one (.pub).")
    try:
        if data.startswith(b"ssh-"):
            key: object = serialization.load_ssh_public_key(data)
        else:
            key = serialization.load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UsageError(
            f"tracefork: {path} is no public key I can use. It is the .pub file of a key, or PEM."
        ) from error
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"tracefork: {path} is no Ed25519 key. {_MAKES_ONE}")
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
    """Return what a small file holds. A pipe would be waited for, and a device never ends."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no file")
    with path.open("rb") as file:
        return file.read(_LONGEST)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

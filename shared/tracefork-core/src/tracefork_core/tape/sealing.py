"""Sealed tapes: everything recorded is encrypted, piece by piece, as it is written.

Each tape has its own key (AES-256-GCM, a new nonce for each piece). The key lies on the tape,
wrapped with age for its readers: for public keys, or for a passphrase. A sealed tape shows the
sizes of pieces, the times of writing and the number of exchanges, and nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tracefork_core.errors import TapeError, UsageError

if TYPE_CHECKING:
    from types import ModuleType

_NONCE = 12
_KEY_BITS = 256
IDENTITY = "TRACEFORK_IDENTITY"
"""The environment variable with the path of a file of age identities."""
PASSPHRASE = "TRACEFORK_PASSPHRASE"  # noqa: S105 - the name of a variable
_SCRYPT = re.compile(rb"^-> scrypt \S+ (\d{1,9})$", re.MULTILINE)
_MOST_WORK = 20
"""The largest work factor of a passphrase: each step doubles the memory, and this takes 1 GiB. A
tape that is sealed today gets 18 or 19."""
_HEADER = 4096


class Seal:
    """Encrypts and decrypts with the key of one tape."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)

    def seal(self, data: bytes, about: bytes) -> bytes:
        """Encrypt a piece. It decrypts only in the place that it is `about`."""
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, data, about)

    def open(self, data: bytes, about: bytes) -> bytes:
        """Decrypt a piece.

        Raises:
            TapeError: it was changed, or encrypted with another key or for another place.
        """
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(data[:_NONCE], data[_NONCE:], about)
        except (InvalidTag, ValueError) as error:
            raise TapeError(
                "tracefork: the sealed tape is corrupt: a piece of it does not decrypt, so it was "
                "changed or moved after it was recorded."
            ) from error


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a tape: ready to use, and wrapped for its readers as it lies on the tape."""

    seal: Seal
    wrapped: bytes


def new_key(recipients: Sequence[str] = ()) -> Key:
    """Return a new key for the holders of age public keys, or of TRACEFORK_PASSPHRASE.

    Raises:
        UsageError: the extra is not installed, no reader is named, or a recipient is not an age
            public key.
    """
    pyrage = _pyrage()
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key = AESGCM.generate_key(_KEY_BITS)
    if recipients:
        try:
            keys = [pyrage.x25519.Recipient.from_str(recipient) for recipient in recipients]
        except pyrage.RecipientError as error:
            raise UsageError(
                f"tracefork: a recipient is not an age public key (age1…): {error}."
            ) from error
        return Key(Seal(key), bytes(pyrage.encrypt(key, keys)))
    if passphrase := os.environ.get(PASSPHRASE):
        return Key(Seal(key), bytes(pyrage.passphrase.encrypt(key, passphrase)))
    raise UsageError(
        "tracefork: a sealed tape needs a reader. Name age public keys (--to age1…), or set "
        f"{PASSPHRASE}."
    )


def unwrap(wrapped: bytes) -> Key | None:
    """Return the key of a tape; None if this environment has no identity that unwraps it.

    Raises:
        UsageError: the identity file cannot be used, or the extra is not installed.
    """
    identity, passphrase = os.environ.get(IDENTITY), os.environ.get(PASSPHRASE)
    if not identity and not passphrase:
        return None
    return _unwrapped(wrapped, identity, passphrase)


def holder() -> str | None:
    """Return the name of the variable that this environment opens tapes with, if it is set."""
    return next((name for name in (IDENTITY, PASSPHRASE) if os.environ.get(name)), None)


@lru_cache(maxsize=64)
def _unwrapped(wrapped: bytes, identity: str | None, passphrase: str | None) -> Key | None:
    # Cached, because a passphrase takes a second to unwrap on purpose.
    pyrage = _pyrage()
    if not identity:
        _check_work(wrapped)
    try:
        if identity:
            key = pyrage.decrypt(wrapped, _identities(pyrage, Path(identity)))
        else:
            key = pyrage.passphrase.decrypt(wrapped, passphrase)
    except pyrage.DecryptError:
        return None
    return Key(Seal(bytes(key)), wrapped)


def _check_work(wrapped: bytes) -> None:
    """Refuse a key whose passphrase takes more memory to derive than any tracefork asks for."""
    for factor in _SCRYPT.findall(wrapped[:_HEADER]):
        if int(factor) > _MOST_WORK:
            raise TapeError(
                f"tracefork: the sealed tape is corrupt: its passphrase has the work factor "
                f"{int(factor)}, and the most is {_MOST_WORK} (1 GiB of memory)."
            )


def _identities(pyrage: ModuleType, path: Path) -> list[object]:
    try:
        lines = path.read_text().splitlines()
        identities = [
            pyrage.x25519.Identity.from_str(line.strip())
            for line in lines
            if line.strip() and not line.startswith("#")
        ]
    except (OSError, ValueError, pyrage.IdentityError) as error:
        raise UsageError(
            f"tracefork: {IDENTITY}={path} is not an age identity file: {error}."
        ) from error
    if not identities:
        raise UsageError(f"tracefork: {IDENTITY}={path} contains no age identity.")
    return identities


def _pyrage() -> ModuleType:
    try:
        import_module("cryptography")  # The extra installs both.
        return import_module("pyrage")
    except ImportError as error:
        raise UsageError(
            "tracefork: sealed tapes need an extra: pip install 'tracefork-core[seal]'."
        ) from error

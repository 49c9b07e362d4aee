"""Sealed tapes: everything that was recorded is encrypted, piece by piece, as it is written.

A tape has a key of its own (AES-256-GCM, a fresh nonce for each piece). The key lies on the tape,
wrapped with age for those who may read it: for public keys, or for a passphrase. Sizes, times of
writing and the number of exchanges show; nothing else does.
"""

from __future__ import annotations

import os
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
"""The environment variable that names a file of age identities."""
PASSPHRASE = "TRACEFORK_PASSPHRASE"  # noqa: S105 - the name of a variable


class Seal:
    """The key of one tape, at work."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)

    def seal(self, data: bytes, about: bytes) -> bytes:
        """Encrypt a piece. It opens in no other place than the one it is `about`."""
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, data, about)

    def open(self, data: bytes, about: bytes) -> bytes:
        """Decrypt a piece.

        Raises:
            TapeError: it was changed, or sealed with another key or for another place.
        """
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(data[:_NONCE], data[_NONCE:], about)
        except (InvalidTag, ValueError) as error:
            raise TapeError(
                "tracefork: a piece of the sealed tape does not open: it was changed since it was "
                "recorded."
            ) from error


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a tape, at work and as it lies on the tape, wrapped for its readers."""

    seal: Seal
    wrapped: bytes


def new_key(recipients: Sequence[str] = ()) -> Key:
    """Return a new key for the holders of age public keys, or of TRACEFORK_PASSPHRASE.

    Raises:
        UsageError: the extra is not installed, nobody could read the tape, or a recipient is none.
    """
    pyrage = _pyrage()
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key = AESGCM.generate_key(_KEY_BITS)
    if recipients:
        try:
            keys = [pyrage.x25519.Recipient.from_str(one) for one in recipients]
        except pyrage.RecipientError as error:
            raise UsageError(
                f"tracefork: no age public key (age1…) to seal for: {error}."
            ) from error
        return Key(Seal(key), bytes(pyrage.encrypt(key, keys)))
    if passphrase := os.environ.get(PASSPHRASE):
        return Key(Seal(key), bytes(pyrage.passphrase.encrypt(key, passphrase)))
    raise UsageError(
        "tracefork: a sealed tape is for somebody: name age public keys (--to age1…), or set "
        f"{PASSPHRASE}."
    )


def unwrap(wrapped: bytes) -> Key | None:
    """Return the key of a tape; None where this environment names nobody who may read it.

    Raises:
        UsageError: what the environment names cannot be used.
    """
    identity, passphrase = os.environ.get(IDENTITY), os.environ.get(PASSPHRASE)
    if not identity and not passphrase:
        return None
    return _unwrapped(wrapped, identity, passphrase)


def holder() -> str | None:
    """Return the name of what this environment opens tapes with, if it has anything."""
    return next((name for name in (IDENTITY, PASSPHRASE) if os.environ.get(name)), None)


@lru_cache(maxsize=64)
def _unwrapped(wrapped: bytes, identity: str | None, passphrase: str | None) -> Key | None:
    # Cached: a passphrase is made to take a second.
    pyrage = _pyrage()
    try:
        if identity:
            found = pyrage.decrypt(wrapped, _identities(pyrage, Path(identity)))
        else:
            found = pyrage.passphrase.decrypt(wrapped, passphrase)
    except pyrage.DecryptError:
        return None
    return Key(Seal(bytes(found)), wrapped)


def _identities(pyrage: ModuleType, path: Path) -> list[object]:
    try:
        lines = path.read_text().splitlines()
        found = [
            pyrage.x25519.Identity.from_str(line.strip())
            for line in lines
            if line.strip() and not line.startswith("#")
        ]
    except (OSError, ValueError, pyrage.IdentityError) as error:
        raise UsageError(f"tracefork: {IDENTITY} names no age identity file: {error}.") from error
    if not found:
        raise UsageError(f"tracefork: {IDENTITY} names a file without an age identity: {path}.")
    return found


def _pyrage() -> ModuleType:
    try:
        import_module("cryptography")  # Both or none.
        return import_module("pyrage")
    except ImportError as error:
        raise UsageError(
            "tracefork: sealed tapes need an extra: pip install 'tracefork-core[seal]'."
        ) from error

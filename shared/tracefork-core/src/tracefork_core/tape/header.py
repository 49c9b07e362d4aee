"""The head of a tape: what it says of itself before anything that was recorded is read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tracefork_core.errors import TapeError, UsageError
from tracefork_core.tape import origin
from tracefork_core.tape.log import Cipher
from tracefork_core.tape.mode import Mode, as_mode
from tracefork_core.tape.sealing import Key, holder, unwrap


class Head:
    """What lies in the table `meta` of a tape.

    Attributes:
        complete: whether the recording was closed; a tape cut off by a crash is not.
        mode: what it keeps; see `mode.Mode`.
        origin: the tape that it is a branch of, if it is one.
        key: what opens it, where it is sealed and this environment has that.
    """

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path = path
        self._db = db
        self.complete = self._said("state") == "complete"
        self.mode = self._known(str(self._said("mode") or "raw"))
        self.origin = origin.read(self._said("origin"), path.name)
        wrapped = self._said("key")
        self.key: Key | None = unwrap(wrapped) if isinstance(wrapped, bytes) else None

    @property
    def structure(self) -> bytes | None:
        """What a closed sealed tape says without its key, as a document."""
        document = self._said("structure")
        return document if isinstance(document, bytes) else None

    @property
    def opens(self) -> bool:
        """Whether the tape can be read here: it is not sealed, or its key is at hand."""
        return self.mode != "sealed" or self.key is not None

    @property
    def cipher(self) -> Cipher | None:
        """What its log and its journal are read with; None where they are plain."""
        return self.key.seal if self.key else None

    def check_opens(self) -> None:
        """Raise a TapeError that says how, where the tape cannot be read here."""
        if not self.opens:
            held = holder()
            raise TapeError(
                f"tracefork: {self._path} is sealed, and not sealed for this {held}."
                if held
                else f"tracefork: {self._path} is sealed. Name your age identity file in "
                "TRACEFORK_IDENTITY, or give TRACEFORK_PASSPHRASE."
            )

    def _said(self, key: str) -> object:
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def _known(self, name: str) -> Mode:
        try:
            return as_mode(name)
        except UsageError as error:
            raise TapeError(
                f"tracefork: {self._path} was recorded in a mode that is not known here: {name!r}. "
                "Upgrade tracefork-core."
            ) from error

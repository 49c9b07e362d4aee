"""Stand in for API keys that are not set, where the tapes say that one was set at recording.

An SDK refuses to make a client without a key. In the block of a replay, a read of a missing key
gives a placeholder. A client that is made earlier, as a module is imported or in a fixture of the
session, gets the same one by this: for names that a tape of the suite holds, and no others. The
tape holds such a name because it is read again once the tape is open.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from tracefork_core.chance.surroundings import VARIABLE, noting_secrets, standing_in
from tracefork_core.errors import TraceforkError
from tracefork_core.masking.names import is_secret_name
from tracefork_core.tape import Tape


class Keys:
    """Knows the names of the keys that the tapes in some folders were recorded with.

    Where tapes are recorded, it notes which keys are read before a tape is open.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._folders: dict[Path, set[str] | None] = {}
        self._read: set[str] | None = None

    def note(self) -> None:
        """Note the names of keys that are read from now on."""
        if self._read is None:
            self._read = set()
            self._stack.enter_context(noting_secrets(self._read))

    def read_again(self) -> None:
        """Read the noted keys in the session that is open now, so that its tape has their names."""
        for name in sorted(self._read or ()):
            os.environ.get(name)

    def look_in(self, folder: Path) -> None:
        """Stand in for the keys of the tapes in this folder, too."""
        if not self._folders:
            self._stack.enter_context(standing_in(self.has))
        self._folders.setdefault(folder, None)

    def has(self, name: str) -> bool:
        """Return whether a tape was recorded with a secret of this name."""
        return is_secret_name(name) and any(name in self._in(folder) for folder in self._folders)

    def _in(self, folder: Path) -> set[str]:
        if (names := self._folders[folder]) is None:
            names = self._folders[folder] = set()  # Reading a tape may read the environment.
            for path in sorted(folder.rglob("*.tape")):
                names |= _secrets_in(path)
        return names


def secrets_on(tape: Tape) -> set[str]:
    """Return the names of the keys that a tape was recorded with."""
    return {one.name for one in tape.surroundings if one.kind == VARIABLE and one.withheld}


def _secrets_in(path: Path) -> set[str]:
    try:
        with Tape.open(path) as tape:
            return secrets_on(tape)
    except TraceforkError:
        return set()  # The test that uses it says what is wrong with it.

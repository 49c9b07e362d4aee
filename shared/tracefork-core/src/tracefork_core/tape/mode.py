"""What a tape keeps of what crossed: its mode.

safe       everything but secrets, which are masked before anything is hashed
metadata   hashes and sizes in place of bodies: it compares, and does not replay
sealed     like safe, and encrypted for those who may read it
raw        everything that credentials are not sent with
"""

from __future__ import annotations

from typing import Literal, get_args

from tracefork_core.errors import UsageError

Mode = Literal["safe", "metadata", "sealed", "raw"]


def as_mode(name: str) -> Mode:
    """Return the mode of a name.

    Raises:
        UsageError: there is none.
    """
    for mode in get_args(Mode):
        if name == mode:
            return mode  # type: ignore[no-any-return]
    raise UsageError(f"tracefork: no mode {name!r}. There are {', '.join(get_args(Mode))}.")

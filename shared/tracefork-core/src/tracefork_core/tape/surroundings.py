"""The events of what a run reads besides the wire: variables, standard input, files."""

from __future__ import annotations

import msgspec

SURROUNDINGS = "surroundings"
INPUT = "input"
FILES = "files"


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the agent read from its surroundings, with the value of the first read.

    `kind` is "variable" (called `name`), "folder", "host", "locale" or "timezone". `value` is None
    if nothing was set, or if it is `withheld`: of secrets that were set, only the name is recorded.
    `site` is the line of the agent's own code that read it, and None where a library read a secret.
    """

    kind: str
    name: str = ""
    value: str | None = None
    site: str | None = None
    withheld: bool = False


class Surroundings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was read from the surroundings since the last exchange."""

    seen: list[Seen]


class Read(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was read from standard input, masked; an empty text is the end of the input.

    `at` is in nanoseconds since the epoch. `binary` bytes are not UTF-8: each is a character of the
    text.
    """

    text: str = ""
    at: int = 0
    binary: bool = False


class Input(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reads of standard input since the last exchange.

    `terminal` says whether it was a terminal, in the first event after the agent asked for that.
    """

    reads: list[Read] = []
    terminal: bool | None = None


class FileState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that the run used, and its state: its size and the SHA-256 of its first MiB.

    `how` is "read" (the state before the first read), "written" (the state at the end of the run),
    "folder" (a temporary folder that was left, without a state) or "source" (a module of the
    agent). The size is None if the file did not exist. A path in the
    folder of the run is relative to that. `site` is the line of the agent that read it. A module
    has its `functions`, each with a hash; "" is what is in none.
    """

    how: str
    path: str
    size: int | None = None
    sha: str | None = None
    site: str | None = None
    functions: tuple[tuple[str, str], ...] = ()


class Files(msgspec.Struct, frozen=True, omit_defaults=True):
    """The files that were used since the last exchange."""

    files: list[FileState]

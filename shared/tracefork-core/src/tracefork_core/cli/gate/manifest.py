"""The manifest of a folder of tapes: which tapes there are, and which command replays each.

It is JSON with sorted keys, so that two people who add a tape each get a merge that git can do.
Folders are relative to the manifest: it works in any clone. Secrets in arguments are placeholders.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from tracefork_core.cli import tape_names
from tracefork_core.cli.agent.agent import Agent, Form
from tracefork_core.cli.agent.kept_arguments import with_secrets, without_secrets
from tracefork_core.errors import TapeError, UnwritableError, UsageError

FILE = "tracefork-ci.json"
VERSION = 1
DEFAULT_FOLDER = "tapes"


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One tape of the manifest.

    Attributes:
        form, target, args: the agent, as on the command line that recorded it.
        folder: where it runs, relative to the folder of the manifest.
        digest: the digest of the run, as in the receipt of the tape.
        exchanges: how many exchanges the tape holds.
        switches: options of the replay, such as `--match=json`.
        recording: options of the recording, such as `--tool=agent:search`.
    """

    form: Form
    target: str
    args: list[str] = []
    folder: str
    digest: str
    exchanges: int
    switches: list[str] = []
    recording: list[str] = []

    @property
    def agent(self) -> Agent:
        """The agent, with the secrets that are in the environment now."""
        return Agent(self.form, self.target, tuple(with_secrets(self.args)))

    def home(self, folder: Path) -> Path:
        """Return where the agent runs, for the manifest of a folder."""
        return (folder / self.folder).resolve()


class Manifest(msgspec.Struct, frozen=True):
    """The tapes of a folder by their file names."""

    tapes: dict[str, Entry] = {}
    version: int = VERSION


def entry_of(
    agent: Agent,
    here: Path,
    folder: Path,
    digest: str,
    exchanges: int,
    *,
    switches: list[str],
    recording: list[str],
) -> Entry:
    """Return the entry of an agent that runs in `here`, for a manifest in `folder`."""
    return Entry(
        form=agent.form,
        target=agent.target,
        args=without_secrets(agent.args, ()),
        folder=Path(os.path.relpath(here.resolve(), folder.resolve())).as_posix(),
        digest=digest,
        exchanges=exchanges,
        switches=switches,
        recording=recording,
    )


def read(folder: Path) -> Manifest:
    """Return the manifest of a folder; an empty one if there is no such file.

    Raises:
        TapeError: it is not a manifest, or a newer tracefork wrote it.
    """
    file = folder / FILE
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        return Manifest()
    except OSError as error:
        raise TapeError(f"tracefork: cannot read {_shown(file)}: {error.strerror}.") from error
    try:
        version = msgspec.json.decode(raw, type=_Version).version
        if version > VERSION:
            raise TapeError(
                f"tracefork: {_shown(file)} has version {version}, and this tracefork reads up to "
                f"version {VERSION}. Upgrade it: pip install -U tracefork-core"
            )
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (ValueError, RecursionError) as error:
        raise TapeError(f"tracefork: {_shown(file)} is not a manifest: {error}.") from error
    for name, entry in manifest.tapes.items():
        if "\0" in name + entry.target + entry.folder:
            raise TapeError(
                f"tracefork: {_shown(file)} has a null character in the entry {name!r}."
            )
        if Path(name).name != name or not name.endswith(tape_names.SUFFIX):
            raise TapeError(
                f"tracefork: {_shown(file)} names the tape {name!r}. Expected the name of a file "
                f"in the same folder that ends in {tape_names.SUFFIX}."
            )
    return manifest


def update(folder: Path, change: Callable[[dict[str, Entry]], None]) -> None:
    """Change the entries of a folder's manifest. Other processes wait until it is written.

    Raises:
        TapeError: what is there is not a manifest.
        UnwritableError: it cannot be written.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            tapes = dict(read(folder).tapes)
            change(tapes)
            text = msgspec.json.format(
                msgspec.json.encode(Manifest(tapes), order="deterministic"), indent=2
            )
            draft = folder / f".{FILE}.{os.getpid()}"
            draft.write_bytes(text + b"\n")
            draft.replace(folder / FILE)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UnwritableError(
            f"tracefork: cannot write {_shown(folder / FILE)}: {error.strerror}."
        ) from error


def name_of(manifest: Manifest, name: str) -> str:
    """Return the name of the tape that a user means.

    Raises:
        UsageError: no entry has this name.
    """
    wanted = Path(name).name
    for candidate in (wanted, wanted + tape_names.SUFFIX):
        if candidate in manifest.tapes:
            return candidate
    known = ", ".join(sorted(manifest.tapes)) or "no tape"
    raise UsageError(f"tracefork: the manifest has no tape {name!r}. It has {known}.")


class _Version(msgspec.Struct):
    version: int


def _shown(path: Path) -> str:
    return tape_names.shown(path)

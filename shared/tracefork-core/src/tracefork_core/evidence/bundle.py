"""Write the evidence of a run into a folder: the same bytes each time, from the same tape.

manifest.json      the digest of the tape, and the SHA-256 of each other file
actions.jsonl      one action per line
patch.json         the files that the tools changed
environment.json   where the run was recorded
verdict.json       what was checked, what is unknown
run.txt            the run as text
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec

from tracefork_core.comparing.text_form import text_form
from tracefork_core.errors import UnwritableError, UsageError
from tracefork_core.evidence.actions import actions
from tracefork_core.evidence.patch import patch_of
from tracefork_core.tape import Tape

VERSION = 1


def write_bundle(tape: Tape, folder: Path, verdict: dict[str, object]) -> None:
    """Write the bundle of a tape.

    Args:
        tape: the run.
        folder: a folder that does not exist, or is empty.
        verdict: what was checked.

    Raises:
        UsageError: the folder holds something.
        UnwritableError: it cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"tracefork: {folder} already exists, and is not an empty folder. Choose another one "
            "for --bundle."
        )
    done = actions(tape)
    files = {
        "actions.jsonl": b"".join(_json(action) + b"\n" for action in done),
        "patch.json": _pretty(patch_of(done)),
        "environment.json": _pretty(tape.environment),
        "verdict.json": _pretty(verdict),
        "run.txt": "\n".join([*text_form(tape), ""]).encode(),
    }
    manifest = {
        "version": VERSION,
        "tape": tape.path.name,
        "digest": tape.digest,
        "files": {name: sha256(data).hexdigest() for name, data in files.items()},
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in {**files, "manifest.json": _pretty(manifest)}.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise UnwritableError(f"tracefork: cannot write {folder}: {error.strerror}.") from error


def _json(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _pretty(value: object) -> bytes:
    return msgspec.json.format(_json(value), indent=2) + b"\n"

"""Let one process at a time write a tape."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path


@contextmanager
def only_writer(tape: Path) -> Iterator[None]:
    """Wait until no other process of this user writes the tape, and keep them waiting.

    The lock is a file in the folder for temporary files, which stays clean: it is removed. A
    process that ends without leaving, by a kill say, leaves no lock.
    """
    name = sha256(os.fsencode(tape.absolute())).hexdigest()[:24]
    file = Path(tempfile.gettempdir()) / f"tracefork-{os.getuid()}-{name}.lock"
    descriptor = _locked(file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(file: Path) -> int:
    while True:
        descriptor = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(descriptor), file.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)  # Its last owner has removed it meanwhile: this locks nothing.

"""Describe where a recording is made: python, platform, packages, commit, hash seed, timezone."""

from __future__ import annotations

import os
import platform
import re
import sys

from tracefork_core.patching.real_clock import real_time, time_ns
from tracefork_core.tape import repository
from tracefork_core.tape.event import Environment
from tracefork_core.version import __version__

_DIST_INFO = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)\.dist-info$")


def describe() -> Environment:
    """Return the environment of this process, without starting a subprocess."""
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        tracefork=__version__,
        packages=packages(),
        git_commit=repository.commit(),
        git_dirty=repository.is_dirty(),
        lockfile=repository.lockfile(),
        started=time_ns(),
        hash_seed=hash_seed(),
    )


def hash_seed() -> str | None:
    """Return the PYTHONHASHSEED that this process started with; None if hashes are random."""
    given = os.environ.get("PYTHONHASHSEED", "")
    if sys.flags.ignore_environment or not given.isdecimal():
        return None
    # Many programs set it to 0 too late. Only a start with 0 switches the flag off.
    is_random = bool(sys.flags.hash_randomization)
    return given if is_random == bool(int(given)) else None


def timezone(at: float) -> str:
    """Return the timezone of this process at a time in seconds, like "UTC+0100 CET"."""
    return str(real_time.strftime("UTC%z %Z", real_time.localtime(at)))


def packages() -> dict[str, str]:
    """Return the version of each distribution that is installed.

    It reads the names of folders: parsing each METADATA costs 100 times more, a Path each 5 times.
    """
    versions: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path):
        if not folder.endswith("-packages"):
            continue
        try:
            names = os.listdir(folder)  # noqa: PTH208 - as above
        except OSError:
            continue  # It is gone, or may not be read.
        for match in map(_DIST_INFO.match, names):
            if match:
                versions.setdefault(match["name"].replace("_", "-").lower(), match["version"])
    return dict(sorted(versions.items()))

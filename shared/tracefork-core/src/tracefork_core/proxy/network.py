"""Take the network away from a command: only the proxy is left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tracefork_core.errors import UsageError

_NAMESPACE = ("unshare", "--map-root-user", "--net", "--")


def check_namespaces() -> None:
    """Check that this system lets a user make network namespaces.

    Raises:
        UsageError: it does not.
    """
    try:
        tried = subprocess.run([*_NAMESPACE, "true"], capture_output=True, text=True, check=False)  # noqa: S603
        reason = tried.stderr.strip() if tried.returncode else None
    except OSError as error:
        reason = f"{_NAMESPACE[0]}: {error.strerror}"
    if reason is not None:
        raise UsageError(
            f"tracefork: --no-network needs network namespaces, and this system refuses them "
            f"({reason}). Leave the option out, and requests past the proxy are not stopped; or "
            "run in a container without a network."
        )


def without_network(command: Sequence[str], path: Path, port: int) -> list[str]:
    """Return the command that runs `command` with no network but the proxy.

    The proxy listens at `path`, and the command finds it at `port` of its own loopback device.
    """
    isolated = str(Path(__file__).with_name("isolated.py"))
    return [*_NAMESPACE, sys.executable, "-I", "-S", isolated, str(path), str(port), *command]

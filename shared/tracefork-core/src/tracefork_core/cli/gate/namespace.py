"""Close the network for a process and all its children, in the kernel.

A replay refuses connections in Python, also in Python children. A program that is not Python could
still connect. So a check runs in a network namespace of its own, which has a loopback interface and
nothing else. That needs Linux, and either root or user namespaces that are open to everybody.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1


def close_network() -> bool:
    """Move this process into a network namespace of its own; return whether that was possible.

    The process must have one thread.
    """
    # Some systems (Ubuntu 24.04) grant the namespace and refuse the rest, and there is no way
    # back then. So a child tries it first.
    if sys.platform != "linux" or not _is_possible():
        return False
    return _close()


def _is_possible() -> bool:
    child = os.fork()
    if not child:
        closed = False
        try:
            closed = _close()
        finally:
            os._exit(0 if closed else 1)
    return os.waitpid(child, 0)[1] == 0


def _close() -> bool:
    user, group = os.getuid(), os.getgid()
    if not _unshare(_NEW_NET):
        if not _unshare(_NEW_USER | _NEW_NET):
            return False
        _keep_identity(user, group)
    _bring_loopback_up()
    return True


def _unshare(flags: int) -> bool:
    return bool(ctypes.CDLL(None, use_errno=True).unshare(flags) == 0)


def _keep_identity(user: int, group: int) -> None:
    """Stay the user that this process was before it got a user namespace."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(text)


def _bring_loopback_up() -> None:
    """Let an agent that talks to itself over 127.0.0.1 go on doing so."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(handle, _GET_FLAGS, request))
        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))

"""Run a command that reaches the proxy and no other address: `isolated.py SOCKET PORT COMMAND…`.

This runs in a network namespace of its own, whose loopback device is empty and down. It switches
the device on, listens there at the port of the proxy, and passes every connection on to the proxy's
socket in the file system. It imports nothing of tracefork, so that it starts fast.
"""

from __future__ import annotations

import fcntl
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress

_SET_FLAGS = 0x8914
_UP_AND_RUNNING = 0x1 | 0x40
_PIECE = 65_536
_KILLED = 128


def main(path: str, port: int, command: list[str]) -> int:
    """Run a command behind a socket, and return its status as a shell would."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        fcntl.ioctl(device, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))
    listening = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=_accept, args=(listening, path), daemon=True).start()
    process = subprocess.Popen(command)  # noqa: S603 - the user's own command
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: process.send_signal(number))
    status = process.wait()
    return status if status >= 0 else _KILLED - status


def _accept(listening: socket.socket, path: str) -> None:
    while True:
        client, _ = listening.accept()
        proxy = socket.socket(socket.AF_UNIX)
        proxy.connect(path)
        for source, target in ((client, proxy), (proxy, client)):
            threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Pass bytes on until one side closes, and close the other."""
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))

"""Messages on a socket: four bytes of length, then the message. Whoever sends more is cut off."""

from __future__ import annotations

import asyncio
import socket
import struct

GREETING_LIMIT = 4096
LIMIT = (256 << 20) + (1 << 20)
"""A body as large as a tape takes, and all around it."""
_LENGTH = struct.Struct(">I")
_PIECE = 1 << 18


class BrokenFrameError(Exception):
    """The peer does not speak as agreed."""


def frame(message: bytes) -> bytes:
    """Return a message as it is sent."""
    return _LENGTH.pack(len(message)) + message


def receive(peer: socket.socket, limit: int = LIMIT) -> bytes | None:
    """Return the next message, or None where the peer has hung up.

    Raises:
        BrokenFrameError: this is no message.
    """
    head = _exactly(peer, _LENGTH.size)
    return None if head is None else _exactly(peer, _size(head, limit))


async def areceive(peer: socket.socket, limit: int = LIMIT) -> bytes | None:
    """Do what `receive` does, on an event loop."""
    head = await _aexactly(peer, _LENGTH.size)
    return None if head is None else await _aexactly(peer, _size(head, limit))


def _size(head: bytes, limit: int) -> int:
    (size,) = _LENGTH.unpack(head)
    if size > limit:
        raise BrokenFrameError(f"a message of {size} bytes")
    return int(size)


def _exactly(peer: socket.socket, size: int) -> bytes | None:
    # As it comes, and not at once: a length is a claim until the bytes are there.
    data = bytearray()
    while len(data) < size:
        piece = peer.recv(min(size - len(data), _PIECE))
        if not piece:
            return None
        data += piece
    return bytes(data)


async def _aexactly(peer: socket.socket, size: int) -> bytes | None:
    loop = asyncio.get_running_loop()
    data = bytearray()
    while len(data) < size:
        piece = await loop.sock_recv(peer, min(size - len(data), _PIECE))
        if not piece:
            return None
        data += piece
    return bytes(data)

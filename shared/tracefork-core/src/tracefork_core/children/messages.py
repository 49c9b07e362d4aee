"""The calls that a child process makes to its parent's session, their answers, and their framing.

A connection carries one call and one answer at a time; each exchange has a connection of its own.
A message is MessagePack behind four bytes of length. Errors of the session travel as `Refused`.
"""

from __future__ import annotations

import asyncio
import socket
import struct

import msgspec

from tracefork_core import errors
from tracefork_core.errors import Divergence, DivergenceError, TraceforkError
from tracefork_core.exchange.contract import Failure, Head, Request
from tracefork_core.tape.digest import spelled
from tracefork_core.tape.event import Draws, Reads

GREETING_LIMIT = 4096
LIMIT = (256 << 20) + (1 << 20)
"""The size limit of a message in bytes: the largest body on a tape, plus 1 MiB."""
_LENGTH = struct.Struct(">I")
_PIECE = 1 << 18
_KINDS: dict[str, type[TraceforkError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, TraceforkError)
}


class Word(msgspec.Struct, tag=True, omit_defaults=True):
    """Base of all messages."""


class Hello(Word):
    """The first message of a connection.

    `process` tells processes of the same lane apart. `lane` is the lane that the process was given;
    its exchanges are on that lane or below it.
    """

    token: str
    process: str
    lane: str


class Open(Word):
    """A request.

    `threads` are the native ids of threads that began to run lanes since the last request.
    `environment` is that of the process, if it has changed: the parent masks its secrets.
    """

    request: Request
    lane: str
    step: str | None = None
    caller: str | None = None
    threads: list[int] = []
    environment: dict[bytes, bytes] | None = None


class HeadCame(Word):
    """The head of a live response."""

    head: Head


class ChunkCame(Word):
    """A piece of the body of a live response."""

    data: bytes


class EndCame(Word):
    """The end of a live response."""


class Failed(Word):
    """A live call ended in an exception."""

    failure: Failure


class LeftOff(Word):
    """The agent stopped reading a live response, or was cancelled while `waiting` for it.

    `complete` tells that there is nothing more to read.
    """

    waiting: bool = False
    complete: bool = False


class ReceiveHead(Word):
    """Ask for the head of a recorded response, in its recorded order."""

    on_loop: bool = False


class ReceiveChunk(Word):
    """Ask for the next piece of a recorded response, in its recorded order."""

    on_loop: bool = False


class Close(Word):
    """The agent stopped reading a recorded response."""


class BeginStep(Word):
    """A step begins."""

    kind: str
    name: str
    parent: str | None
    detail: dict[str, object]


class EndStep(Word):
    """A step ends."""

    step: str
    error: str | None = None
    kind: str | None = None


class Check(Word):
    """Ask for the error that poisoned the session, if any."""


class Draw(Word):
    """The random values and clock reads of the process since its last message of this kind."""

    draws: Draws


class AskChance(Word):
    """Ask for the seed and the recorded sources of this run."""


class Recall(Word):
    """Ask for the recorded random values and clock reads of a lane."""

    lane: str


class Leave(Word):
    """The process ends; counts the draws for which the tape had no value."""

    clock: int = 0
    entropy: int = 0


class Done(Word):
    """The call succeeded; its data is on the tape."""


class Live(Word):
    """Make the call live, or make that of `sends` instead."""

    sends: Request | None = None


class Recorded(Word):
    """The response comes from the tape."""


class NotOurs(Word):
    """The request is not part of the run."""


class Received(Word):
    """A head, a failure or a piece of a body; the end of the body if all are None."""

    head: Head | None = None
    failure: Failure | None = None
    data: bytes | None = None


class Begun(Word):
    """The id of a new step."""

    step: str


class Recalled(Word):
    """Recorded random values and clock reads."""

    reads: list[Reads]


class Chance(Word):
    """The seed for entropy, and the sources that are on the tape."""

    seed: bytes
    sources: list[str]


class Refused(Word):
    """An error of the session, with the name of its class."""

    kind: str
    text: str
    divergence: Divergence | None = None


class Over(Word):
    """The session has ended."""


Call = (
    Open
    | HeadCame
    | ChunkCame
    | EndCame
    | Failed
    | LeftOff
    | ReceiveHead
    | ReceiveChunk
    | Close
    | BeginStep
    | EndStep
    | Check
    | Draw
    | AskChance
    | Recall
    | Leave
)
Answer = Done | Live | Recorded | NotOurs | Received | Begun | Recalled | Chance | Refused | Over

_encode = msgspec.msgpack.Encoder().encode


def encode(word: Word) -> bytes:
    """Return a message as MessagePack."""
    try:
        return _encode(word)
    except UnicodeEncodeError:
        return _encode(spelled(word))


hello = msgspec.msgpack.Decoder(Hello).decode
call = msgspec.msgpack.Decoder(Call).decode
answer: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def refused(error: Exception) -> Refused:
    """Return the message for an error."""
    text = str(error).encode("utf-8", "backslashreplace").decode()
    if isinstance(error, DivergenceError):
        return Refused("DivergenceError", text, error.divergence)
    if isinstance(error, TraceforkError):
        return Refused(type(error).__name__, text)
    return Refused(
        "TraceforkError", f"tracefork: the session of the parent process failed: {error!r}"
    )


def as_raised(refusal: Refused) -> TraceforkError:
    """Return the error of a message."""
    if refusal.divergence is not None:
        return DivergenceError(refusal.divergence)
    return _KINDS.get(refusal.kind, TraceforkError)(refusal.text)


class BrokenFrameError(Exception):
    """The peer sent an invalid message."""


def frame(message: bytes) -> bytes:
    """Prefix a message with its length."""
    return _LENGTH.pack(len(message)) + message


def receive(peer: socket.socket, limit: int = LIMIT) -> bytes | None:
    """Return the next message, or None if the peer closed the connection.

    Raises:
        BrokenFrameError: the message is larger than `limit`.
    """
    head = _exactly(peer, _LENGTH.size)
    return None if head is None else _exactly(peer, _size(head, limit))


async def areceive(peer: socket.socket, limit: int = LIMIT) -> bytes | None:
    """Do what `receive` does, without blocking the event loop."""
    head = await _aexactly(peer, _LENGTH.size)
    return None if head is None else await _aexactly(peer, _size(head, limit))


def _size(head: bytes, limit: int) -> int:
    (size,) = _LENGTH.unpack(head)
    if size > limit:
        raise BrokenFrameError(f"a message of {size} bytes")
    return int(size)


def _exactly(peer: socket.socket, size: int) -> bytes | None:
    # Not allocated at once: a stranger may claim any length.
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

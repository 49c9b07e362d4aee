"""The calls that a child process makes to the session of its parent, and their answers.

One call, one answer, on one connection; each exchange has a connection for its time.
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
"""A body as large as a tape takes, and all around it."""
_LENGTH = struct.Struct(">I")
_PIECE = 1 << 18
_KINDS: dict[str, type[TraceforkError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, TraceforkError)
}


class Word(msgspec.Struct, tag=True, omit_defaults=True):
    """One message."""


class Hello(Word):
    """The first call: nothing else is read before it. `process` tells processes of one lane apart.

    `lane` is the one that the process was given; its exchanges are on it, or below.
    """

    token: str
    process: str
    lane: str


class Open(Word):
    """A request.

    `threads` are the native ids of threads that began to run lanes since the last one;
    `environment` is that of the process, where it has changed: secrets are in it.
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
    """The agent stopped reading a live response, or `waiting` for it."""

    waiting: bool = False


class ReceiveHead(Word):
    """Ask for the head of a recorded response in its turn."""

    on_loop: bool = False


class ReceiveChunk(Word):
    """Ask for the next piece of a recorded response in its turn."""

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
    """Ask whether the session goes on."""


class Draw(Word):
    """What the process drew from chance since the last time."""

    draws: Draws


class AskChance(Word):
    """Ask what the chance of this run is made of."""


class Recall(Word):
    """Ask for what was drawn on a lane when this was recorded."""

    lane: str


class Leave(Word):
    """The process ends. Counts what the tape had no value for, of all that it drew."""

    clock: int = 0
    entropy: int = 0


class Done(Word):
    """The call was heard; what it tells is on the tape."""


class Live(Word):
    """Make the call for real, or that of `sends` in its place."""

    sends: Request | None = None


class Recorded(Word):
    """The answer is on the tape."""


class NotOurs(Word):
    """The request is no part of the run."""


class Received(Word):
    """A head, a failure, a piece of a body, or with none of them the end of it."""

    head: Head | None = None
    failure: Failure | None = None
    data: bytes | None = None


class Begun(Word):
    """The id of a step that began."""

    step: str


class Recalled(Word):
    """What was drawn when this was recorded."""

    reads: list[Reads]


class Chance(Word):
    """Where entropy comes from, and which sources of a process are on the tape."""

    seed: bytes
    sources: list[str]


class Refused(Word):
    """An error of the session, by the name of its class."""

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
    """Return a word in MessagePack."""
    try:
        return _encode(word)
    except UnicodeEncodeError:
        return _encode(spelled(word))


hello = msgspec.msgpack.Decoder(Hello).decode
call = msgspec.msgpack.Decoder(Call).decode
answer: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def refused(error: Exception) -> Refused:
    """Return an error as it is sent."""
    text = str(error).encode("utf-8", "backslashreplace").decode()
    if isinstance(error, DivergenceError):
        return Refused("DivergenceError", text, error.divergence)
    if isinstance(error, TraceforkError):
        return Refused(type(error).__name__, text)
    return Refused("TraceforkError", f"tracefork: the session of the parent failed: {error!r}")


def as_raised(refusal: Refused) -> TraceforkError:
    """Return a refusal as the error it was."""
    if refusal.divergence is not None:
        return DivergenceError(refusal.divergence)
    return _KINDS.get(refusal.kind, TraceforkError)(refusal.text)


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

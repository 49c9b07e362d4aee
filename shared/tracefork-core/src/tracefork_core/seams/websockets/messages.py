"""The messages of a websocket, and how a tape holds those that the server sent.

On the tape, the server's messages are a stream of server-sent events, so that everything that reads
the stream of a model reads them too:

    data: {"type": …}                    a text message, one data line for each of its lines
    event: binary                        a binary message that is UTF-8, as Gemini sends its JSON
    event: base64                        any other binary message
    event: close  data: 1000 bye         the server's close frame: its code and its reason
    event: timeout                       no message: the agent's own timeout was over, and how
                                         the library put it
"""

from __future__ import annotations

import base64
import binascii
from typing import Literal, NamedTuple

Kind = Literal["text", "binary", "close", "timeout"]

_GAP = b"\n\n"
_DATA, _EVENT = b"data:", b"event:"


class Message(NamedTuple):
    """What a websocket carried. The data of a close frame are its code and its reason."""

    data: bytes
    kind: Kind = "text"

    @property
    def closing(self) -> tuple[int, str]:
        """The code and the reason of a close frame."""
        return closing_of(self.data.decode("utf-8", "replace"))


def close_message(code: int, reason: str) -> Message:
    """Return a close frame."""
    return Message(f"{code} {reason}".rstrip().encode("utf-8", "replace"), "close")


def closing_of(text: str) -> tuple[int, str]:
    """Return the code and the reason that a text holds; 1006 for a text without a code."""
    code, _, reason = text.partition(" ")
    return (int(code), reason) if code.isascii() and code.isdigit() else (1006, text)


def encoded(message: Message) -> bytes:
    """Return a message as an event of the stream."""
    name, data = message.kind.encode(), message.data
    if message.kind == "binary" and not _is_text(data):
        name, data = b"base64", base64.b64encode(data)
    head = b"" if name == b"text" else b"event: %b\n" % name
    return head + b"".join(b"data: %b\n" % line for line in data.split(b"\n")) + b"\n"


class Decoder:
    """Returns the messages of a stream whose pieces may end anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[Message]:
        """Take the next piece, and return the messages that it completes."""
        *events, self._rest = (self._rest + piece).split(_GAP)
        return [decoded(event) for event in events]


def decoded(event: bytes) -> Message:
    """Return the message of an event; one of another name, as a fork may give, is a text."""
    name, lines = b"", []
    for line in event.split(b"\n"):
        if line.startswith(_EVENT):
            name = line[len(_EVENT) :].strip()
        elif line.startswith(_DATA):
            lines.append(line[len(_DATA) :].removeprefix(b" "))
    data = b"\n".join(lines)
    match name:
        case b"binary":
            return Message(data, "binary")
        case b"base64":
            return Message(_from_base64(data), "binary")
        case b"close":
            return Message(data, "close")
        case b"timeout":
            return Message(data, "timeout")
    return Message(data)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _from_base64(data: bytes) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:  # A secret in it was masked.
        return data

"""A child's connection to the session of its parent: one call at a time."""

from __future__ import annotations

import asyncio
import socket

import msgspec

from tracefork_core.children.protocol import messages
from tracefork_core.children.protocol.frames import BrokenFrameError, areceive, frame, receive
from tracefork_core.children.protocol.invitation import Invitation
from tracefork_core.children.protocol.messages import Answer, Over, Refused, Word
from tracefork_core.children.protocol.refusals import as_raised
from tracefork_core.exchange.current import crossing_seam

_PATIENCE = 20.0


class LostError(Exception):
    """The session of the parent has ended, or cannot be reached."""


class Connection:
    """One socket. Once a call was lost, all that follow are."""

    def __init__(self, invitation: Invitation, process: str) -> None:
        host, _, port = invitation.address.rpartition(":")
        try:
            with crossing_seam():  # Not the agent's: neither counted nor drawn.
                if port.isdigit():
                    self._socket = socket.create_connection((host, int(port)), _PATIENCE)
                else:
                    self._socket = socket.socket(socket.AF_UNIX)
                    self._socket.settimeout(_PATIENCE)
                    self._socket.connect(invitation.address)
        except OSError as error:
            raise LostError(str(error)) from error
        self.lost = False
        self.call(messages.Hello(invitation.token, process, invitation.lane))
        self._socket.settimeout(None)

    def call(self, word: Word) -> Answer:
        """Make a call and wait for its answer.

        Raises:
            TraceforkError: the session says so.
            LostError: nobody answers any more.
        """
        try:
            self._socket.sendall(frame(messages.encode(word)))
            heard = receive(self._socket)
        except (OSError, BrokenFrameError) as error:
            raise self._lose() from error
        except BaseException:
            self._lose()  # The answer to this would be taken for that to the next.
            raise
        return self._understood(heard)

    async def acall(self, word: Word) -> Answer:
        """Do what `call` does, on an event loop. Given up, the connection is closed."""
        loop = asyncio.get_running_loop()
        try:
            self._socket.settimeout(0)
            await loop.sock_sendall(self._socket, frame(messages.encode(word)))
            heard = await areceive(self._socket)
            self._socket.settimeout(None)
        except (OSError, BrokenFrameError) as error:
            raise self._lose() from error
        except BaseException:
            self._lose()
            raise
        return self._understood(heard)

    def close(self) -> None:
        """Hang up."""
        self.lost = True
        self._socket.close()

    def _lose(self) -> LostError:
        self.close()
        return LostError("the connection was closed")

    def _understood(self, heard: bytes | None) -> Answer:
        if heard is None:
            raise self._lose()
        try:
            said = messages.answer.decode(heard)
        except msgspec.MsgspecError as error:
            raise self._lose() from error
        if isinstance(said, Over):
            raise self._lose()
        if isinstance(said, Refused):
            raise as_raised(said)
        return said

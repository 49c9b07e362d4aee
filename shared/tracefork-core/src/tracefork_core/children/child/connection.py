"""A child's connection to its parent's session, and the exchanges that run over it.

One call at a time: after a call the connection waits for the answer. The parent does what an
exchange does here.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Literal

import msgspec

from tracefork_core.children import messages
from tracefork_core.children.invitation import Invitation
from tracefork_core.children.messages import (
    Answer,
    BrokenFrameError,
    Over,
    Received,
    Refused,
    Word,
    areceive,
    as_raised,
    frame,
    receive,
)
from tracefork_core.errors import TraceforkError
from tracefork_core.exchange.contract import Failure, Head, Request
from tracefork_core.exchange.current import crossing_seam

_TIMEOUT_SECONDS = 20.0


class LostError(Exception):
    """The parent's session has ended or cannot be reached."""


class Connection:
    """A socket to the parent; after a lost call, all later calls are lost too."""

    def __init__(self, invitation: Invitation, process: str) -> None:
        host, _, port = invitation.address.rpartition(":")
        try:
            with crossing_seam():  # This socket is ours: not counted, and without draws.
                if port.isdigit():
                    self._socket = socket.create_connection((host, int(port)), _TIMEOUT_SECONDS)
                else:
                    self._socket = socket.socket(socket.AF_UNIX)
                    self._socket.settimeout(_TIMEOUT_SECONDS)
                    self._socket.connect(invitation.address)
        except OSError as error:
            raise LostError(str(error)) from error
        self.lost = False
        self.call(messages.Hello(invitation.token, process, invitation.lane))
        self._socket.settimeout(None)

    def call(self, word: Word) -> Answer:
        """Make a call and wait for its answer.

        Raises:
            TraceforkError: the session answered with this error.
            LostError: the session is gone.
        """
        try:
            self._socket.sendall(frame(messages.encode(word)))
            message = receive(self._socket)
        except (OSError, BrokenFrameError) as error:
            raise self._lose() from error
        except BaseException:
            self._lose()  # Its late answer would be taken for the answer to the next call.
            raise
        return self._understood(message)

    async def acall(self, word: Word) -> Answer:
        """Do what `call` does, on an event loop; a cancelled call closes the connection."""
        loop = asyncio.get_running_loop()
        try:
            self._socket.settimeout(0)
            await loop.sock_sendall(self._socket, frame(messages.encode(word)))
            message = await areceive(self._socket)
            self._socket.settimeout(None)
        except (OSError, BrokenFrameError) as error:
            raise self._lose() from error
        except BaseException:
            self._lose()
            raise
        return self._understood(message)

    def close(self) -> None:
        """Close the connection."""
        self.lost = True
        self._socket.close()

    def _lose(self) -> LostError:
        self.close()
        return LostError("the connection was closed")

    def _understood(self, message: bytes | None) -> Answer:
        if message is None:
            raise self._lose()
        try:
            answer = messages.answer.decode(message)
        except msgspec.MsgspecError as error:
            raise self._lose() from error
        if isinstance(answer, Over):
            raise self._lose()
        if isinstance(answer, Refused):
            raise as_raised(answer)
        return answer


class RemoteLive:
    """A live call of this process. Each piece is on the tape before the agent receives it.

    If the parent's session ends, the call continues: a recording must not stop an agent.
    """

    is_live: ClassVar[Literal[True]] = True

    def __init__(
        self,
        connection: Connection,
        quiet: Callable[[object], Awaitable[None]],
        free: Callable[[Connection], None],
        sends: Request | None,
    ) -> None:
        self._connection = connection
        self._quiet = quiet
        self._free = free
        self.sends = sends
        self._over = False

    async def quiet(self) -> None:
        if not self._over:
            await self._quiet(self)

    def head(self, head: Head) -> None:
        self._tell(messages.HeadCame(head))

    def chunk(self, data: bytes) -> None:
        self._tell(messages.ChunkCame(data))

    def end(self) -> None:
        self._tell(messages.EndCame(), last=True)

    def complete(self) -> None:
        self._tell(messages.LeftOff(complete=True), last=True)

    def abandon(self) -> None:
        self._tell(messages.LeftOff(), last=True)

    def fail(self, failure: Failure) -> None:
        message = failure.message.encode("utf-8", "backslashreplace").decode()
        self._tell(messages.Failed(Failure(failure.kind, message)), last=True)

    def cancel(self, rounds: int = 0) -> None:
        self._tell(messages.LeftOff(waiting=True), last=True)

    def _tell(self, word: Word, *, last: bool = False) -> None:
        if self._over:
            return
        self._over = last
        try:
            self._connection.call(word)
        except LostError:
            self._over = True
        except TraceforkError:
            self._over = True
            raise
        finally:
            if self._over:
                self._free(self._connection)


class RemoteRecorded:
    """A recorded response: each receive waits in the parent for its recorded turn.

    On an event loop, a piece is delivered when the tasks that the previous delivery woke up are
    done. A cancelled receive closes the response, because the parent cannot hand out a piece twice.
    (In the parent's own process, a body can be read on after a cancelled receive.)
    """

    is_live: ClassVar[Literal[False]] = False

    def __init__(
        self,
        connection: Connection,
        quiet: Callable[[object], Awaitable[None]],
        outlived: Callable[[], TraceforkError],
        free: Callable[[Connection], None],
    ) -> None:
        self._connection = connection
        self._quiet = quiet
        self._outlived = outlived
        self._free = free
        self._over = False

    def receive_head(self) -> Head | Failure:
        with self._asking() as connection:
            return self._head(connection.call(messages.ReceiveHead()))

    async def areceive_head(self) -> Head | Failure:
        with self._asking() as connection:
            answer = await connection.acall(messages.ReceiveHead(on_loop=True))
            await self._quiet(self)
            return self._head(answer)

    def receive_chunk(self) -> bytes | Failure | None:
        if self._over:
            return None
        with self._asking() as connection:
            return self._chunk(connection.call(messages.ReceiveChunk()))

    async def areceive_chunk(self) -> bytes | Failure | None:
        if self._over:
            return None
        with self._asking() as connection:
            answer = await connection.acall(messages.ReceiveChunk(on_loop=True))
            await self._quiet(self)
            return self._chunk(answer)

    def close(self) -> None:
        if not self._over:
            try:
                self._connection.call(messages.Close())
            except LostError:
                pass
            finally:
                self._finish()

    @contextmanager
    def _asking(self) -> Iterator[Connection]:
        try:
            yield self._connection
        except LostError:
            self._finish()
            raise self._outlived() from None
        except BaseException:
            self.close()
            raise

    def _head(self, answer: Answer) -> Head | Failure:
        assert isinstance(answer, Received)
        if answer.head is not None:
            return answer.head
        assert answer.failure is not None
        self._finish()
        return answer.failure

    def _chunk(self, answer: Answer) -> bytes | Failure | None:
        assert isinstance(answer, Received)
        if answer.data is not None:
            return answer.data
        self._finish()
        return answer.failure

    def _finish(self) -> None:
        if not self._over:
            self._over = True
            self._free(self._connection)

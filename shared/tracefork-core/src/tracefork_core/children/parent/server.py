"""Answer the calls of child processes, with a thread for each connection."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import os
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from tracefork_core.children import messages
from tracefork_core.children.messages import Answer, Done, Received, frame, receive, refused
from tracefork_core.exchange.caller import called_from
from tracefork_core.exchange.contract import Failure, Head, Lane, Live, Recorded, Session
from tracefork_core.exchange.current import current_step
from tracefork_core.exchange.lane import UNORDERED, on_lane
from tracefork_core.tape.event import Draws, Reads


@dataclass(frozen=True, slots=True)
class Host:
    """A session that other processes join.

    Attributes:
        session: the session.
        seed: the seed of the run's entropy.
        sources: the sources that are on the tape: "clock", "entropy".
        recall: returns the recorded random values and clock reads.
        put: puts a process's random values and clock reads on the tape.
        learn: adds the secrets of a process's environment to those that are masked.
    """

    session: Session
    seed: bytes
    sources: list[str]
    recall: Callable[[], Iterable[Reads]]
    put: Callable[[Draws], None]
    learn: Callable[[Mapping[str, str]], None]


class Places(Protocol):
    """Assigns lanes to processes, and adds up the misses that they report."""

    closed: bool

    def lane_of(self, process: str, lane: str) -> str: ...

    def left(self, clock: int, entropy: int) -> None: ...


class Served:
    """One connection of a child process, after its first call."""

    def __init__(
        self, host: Host, places: Places, peer: socket.socket, hello: messages.Hello
    ) -> None:
        self._host = host
        self._places = places
        self._peer = peer
        self._asked = hello.lane
        self._granted = places.lane_of(hello.process, hello.lane)
        self._live: Live | None = None
        self._recorded: Recorded | None = None
        self._runner: asyncio.Runner | None = None
        self.busy = threading.Lock()

    def serve(self) -> None:
        """Answer calls until the process closes the connection.

        Raises:
            MsgspecError, BrokenFrameError: the process sent an invalid message.
        """
        try:
            while (message := receive(self._peer)) is not None:
                answer = self._answered(messages.call(message))
                if answer is None:
                    return
                self._peer.sendall(frame(messages.encode(answer)))
        finally:
            # A killed process reads no further: nothing may wait for the rest of its response.
            if self._recorded is not None:
                self._recorded.close()
            if self._runner is not None:
                self._runner.close()

    def _answered(self, call: messages.Call) -> Answer | None:
        """Return the answer to a call; None if the process did not wait for it."""
        try:
            match call:
                case messages.ReceiveHead() | messages.ReceiveChunk():
                    return self._received(call)
                case _:
                    with self.busy:
                        return messages.Over() if self._is_over() else self._done(call)
        except asyncio.CancelledError:
            return None
        except Exception as error:  # noqa: BLE001 - any error goes to the child
            self._recorded = None
            return refused(error)

    def _done(self, call: messages.Call) -> Answer:
        match call:
            case messages.Open():
                return self._opened(call)
            case messages.BeginStep():
                begin = self._host.session.begin_step
                return messages.Begun(begin(call.kind, call.name, call.parent, call.detail))
            case messages.EndStep():
                self._host.session.end_step(call.step, call.error, call.kind)
            case messages.Check():
                self._host.session.check()
            case messages.Draw():
                moved = [self._moved(r, self._lane(r.lane)) for r in call.draws.reads]
                self._host.put(Draws(moved))
            case messages.AskChance():
                return messages.Chance(self._seed(), self._host.sources)
            case messages.Recall():
                return messages.Recalled(list(self._remembered(call.lane)))
            case messages.Leave():
                self._places.left(call.clock, call.entropy)
            case messages.Close():
                if self._recorded is not None:
                    self._recorded.close()
                self._recorded = None
            case _:
                self._delivered(call)
        return Done()

    def _opened(self, call: messages.Open) -> Answer:
        session = self._host.session
        if call.environment is not None:
            self._host.learn({os.fsdecode(k): os.fsdecode(v) for k, v in call.environment.items()})
        session.threads.update(call.threads)
        unordered = call.lane == f"{self._asked}/{UNORDERED}"
        name = UNORDERED if unordered else self._lane(call.lane)
        lane = Lane(name, session, set(), name)

        def opened() -> Live | Recorded | None:
            current_step.set(call.step)
            if lane.name == UNORDERED:
                return session.open(call.request)
            with on_lane(lane):
                return session.open(call.request)

        with called_from(call.caller):
            answer = contextvars.copy_context().run(opened)
        self._live = self._recorded = None
        if answer is None:
            return messages.NotOurs()
        if answer.is_live:
            self._live = answer
            return messages.Live(answer.sends)
        self._recorded = answer
        return messages.Recorded()

    def _delivered(self, call: messages.Call) -> None:
        live = self._live
        if live is None:
            return
        match call:
            case messages.HeadCame():
                live.head(call.head)
            case messages.ChunkCame():
                live.chunk(call.data)
            case messages.EndCame():
                live.end()
            case messages.Failed():
                live.fail(call.failure)
            case messages.LeftOff(waiting=True):
                live.cancel()
            case messages.LeftOff(complete=True):
                live.complete()
            case messages.LeftOff():
                live.abandon()

    def _received(self, call: messages.ReceiveHead | messages.ReceiveChunk) -> Answer:
        recorded = self._recorded
        if recorded is None or self._is_over():
            return messages.Over()
        piece: Head | Failure | bytes | None
        match call:
            case messages.ReceiveHead(on_loop=True):
                piece = self._awaited(recorded.areceive_head())
            case messages.ReceiveHead():
                piece = recorded.receive_head()
            case messages.ReceiveChunk(on_loop=True):
                piece = self._awaited(recorded.areceive_chunk())
            case messages.ReceiveChunk():
                piece = recorded.receive_chunk()
        if isinstance(piece, Head):
            return Received(head=piece)
        if isinstance(piece, bytes):
            return Received(data=piece)
        self._recorded = None
        return Received(failure=piece)

    def _awaited(self, receiving: Coroutine[Any, Any, Any]) -> Any:
        """Wait until the response arrives, or the child's task is cancelled and disconnects."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(self._while_connected(receiving))

    async def _while_connected(self, receiving: Coroutine[Any, Any, Any]) -> Any:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(receiving)
        # A child makes one call at a time: anything before the answer is its disconnect.
        loop.add_reader(self._peer, task.cancel)
        try:
            return await task
        finally:
            with suppress(OSError, ValueError):
                loop.remove_reader(self._peer)

    def _is_over(self) -> bool:
        return self._places.closed or not self._host.session.active

    def _lane(self, name: str) -> str:
        """Return this session's name for a lane of the process."""
        if name == self._asked or name.startswith(f"{self._asked}/"):
            return self._granted + name[len(self._asked) :]
        return name

    def _seed(self) -> bytes:
        """Return the seed for a process: another seed if its lane was taken already."""
        seed = self._host.seed
        if self._granted == self._asked:
            return seed
        return hashlib.sha256(seed + self._granted.encode()).digest()

    def _remembered(self, lane: str) -> Iterable[Reads]:
        here = self._lane(lane)
        return (self._moved(reads, lane) for reads in self._host.recall() if reads.lane == here)

    @staticmethod
    def _moved(reads: Reads, lane: str) -> Reads:
        return Reads(reads.source, lane, reads.site, reads.values)

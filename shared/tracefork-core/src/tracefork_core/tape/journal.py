"""The journal of what is in flight: a file beside the tape, appended to without a transaction.

It survives the death of the process (the operating system has its bytes) and costs one write per
piece. It is emptied when nothing is in flight. Readers skip what has landed on the tape. Each frame
is a line of JSON with the length of the bytes that follow it:

    {"n":7,"size":412,"payload":{…},"aside":{…}}   a request, and its body
    {"n":7,"payload":{…},"aside":{…}}               the same with the head of its response
    {"n":7,"turn":31,"size":64}                     a chunk, in its turn
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.tape.digest import canonical, sha256, spelled
from tracefork_core.tape.event import ExchangeAside, ExchangePayload, StepRecord
from tracefork_core.tape.exchange import Exchange
from tracefork_core.tape.log import Cipher
from tracefork_core.tape.schema import LARGEST, beside

SUFFIX = "-flight"
_TIDY = 16 * 1024
_COMPACT = 8 * 1024 * 1024
_MOST = _COMPACT + LARGEST
"""The most bytes of bodies that are read from one journal."""
_LONGEST_LINE = 16 * 1024 * 1024


class _Frame(msgspec.Struct, omit_defaults=True):
    n: int
    size: int = 0
    turn: int | None = None
    payload: ExchangePayload | None = None
    aside: ExchangeAside | None = None


class _Read(msgspec.Struct):
    """A frame whose two documents are not decoded yet."""

    n: int
    size: int = 0
    turn: int | None = None
    payload: msgspec.Raw = msgspec.Raw()
    aside: msgspec.Raw = msgspec.Raw()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Read).decode


def _line(frame: _Frame) -> bytes:
    try:
        return _encode(frame)
    except UnicodeEncodeError:
        return _encode(spelled(frame))


@dataclass(slots=True)
class Flight:
    """An exchange as far as it had arrived. `chunks` are (turn, data)."""

    n: int
    payload: bytes
    aside: bytes
    body: bytes
    chunks: list[tuple[int, bytes]] = field(default_factory=list)


class Journal:
    """The journal of one recording. Not safe to use from two threads at once."""

    def __init__(self, tape: Path, cipher: Cipher | None = None) -> None:
        self._path = beside(tape, SUFFIX)
        self._cipher = cipher
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        self._flights: dict[int, list[list[bytes]]] = {}
        self._size = 0

    def begin(self, payload: ExchangePayload, aside: ExchangeAside, body: bytes) -> None:
        """Write a request before it leaves."""
        self._flights[payload.n] = []
        self._write(payload.n, _Frame(payload.n, len(body), None, payload, aside), body)

    def head(self, payload: ExchangePayload, aside: ExchangeAside) -> None:
        """Write the head of a response."""
        self._write(payload.n, _Frame(payload.n, 0, None, payload, aside))

    def chunk(self, n: int, turn: int, data: bytes) -> None:
        """Write a chunk."""
        self._write(n, _Frame(n, len(data), turn), data)

    def end(self, n: int) -> None:
        """Forget an exchange, because the tape has it."""
        self._flights.pop(n, None)
        if not self._flights and self._size > _TIDY:
            os.ftruncate(self._file, 0)
            self._size = 0
        elif self._size > _COMPACT:
            self._compact()

    def close(self, *, remove: bool) -> None:
        """Close the journal, and `remove` it if the tape has everything."""
        with suppress(OSError):  # The agent may have closed all descriptors, this one too.
            os.close(self._file)
        if remove:
            self._path.unlink(missing_ok=True)

    def _write(self, n: int, frame: _Frame, data: bytes = b"") -> None:
        if self._cipher is not None and data:
            data = self._cipher.seal(data, b"flight %d" % n)
            frame.size = len(data)
        line = _line(frame)
        parts = [line if self._cipher is None else self._sealed(line), b"\n", data]
        if (flight := self._flights.get(n)) is not None:
            flight.append(parts)
            self._append(parts)

    def _sealed(self, line: bytes) -> bytes:
        assert self._cipher is not None
        return self._cipher.seal(line, b"flight").hex().encode()

    def _append(self, parts: list[bytes]) -> None:
        length = sum(map(len, parts))
        written = os.writev(self._file, parts)
        if written < length:
            # Signals and full disks cut writes short. A second write tells which one it was.
            rest = memoryview(b"".join(parts))[written:]
            while rest:
                rest = rest[os.write(self._file, rest) :]
        self._size += length

    def _compact(self) -> None:
        """Write what is still in flight to a new file, which replaces this one."""
        fresh = beside(self._path, "-new")
        old, flags = self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        self._file, self._size = os.open(fresh, flags, 0o600), 0
        for flight in self._flights.values():
            for parts in flight:
                self._append(parts)
        fresh.replace(self._path)
        os.close(old)


def read(tape: Path, cipher: Cipher | None = None) -> list[Flight]:
    """Return what was in flight when a recording ended, as far as its journal can be read.

    It reads a bounded number of bytes: a corrupt file may declare any size.
    """
    path = beside(tape, SUFFIX)
    if not path.is_file():  # Opening a pipe would block.
        return []
    flights: dict[int, Flight] = {}
    left = _MOST
    # The last frame may be incomplete: the process may have died while it wrote that.
    with (
        suppress(OSError, TapeError, msgspec.MsgspecError, ValueError, RecursionError, EOFError),
        path.open("rb") as file,
    ):
        whole = os.fstat(file.fileno()).st_size
        while (line := file.readline(_LONGEST_LINE)).endswith(b"\n"):
            line = line[:-1]
            if cipher is not None:
                line = cipher.open(bytes.fromhex(line.decode("ascii")), b"flight")
            frame = _decode(line)
            if not 0 <= frame.size <= min(left, whole - file.tell()):
                break
            left -= frame.size
            body = file.read(frame.size)
            if cipher is not None and body:
                body = cipher.open(body, b"flight %d" % frame.n)
            _take(flights, frame, body)
    return list(flights.values())


def _take(flights: dict[int, Flight], frame: _Read, body: bytes) -> None:
    flight = flights.get(frame.n)
    payload, aside = bytes(frame.payload), bytes(frame.aside)
    if frame.turn is not None:
        if flight is not None:
            flight.chunks.append((frame.turn, body))
    elif flight is None:
        flights[frame.n] = Flight(frame.n, payload, aside, body)
    else:
        flight.payload, flight.aside = payload, aside


class Landed(Protocol):
    """The tape that a journal lies beside."""

    @property
    def keeps_bodies(self) -> bool: ...

    def blob(self, sha: str) -> bytes: ...

    def steps_down_to(self, step: str | None) -> tuple[StepRecord, ...]: ...


def exchanges_in_flight(
    tape: Landed, flights: Iterable[Flight], landed: Collection[int]
) -> Iterator[Exchange]:
    """Yield the exchanges of a journal that have not landed, with the chunks the agent has seen.

    Raises:
        msgspec.MsgspecError: the journal is corrupt.
    """
    for flight in flights:
        if flight.n in landed:
            continue
        payload = msgspec.json.decode(flight.payload, type=ExchangePayload)
        aside = msgspec.json.decode(flight.aside, type=ExchangeAside)
        chunks = [data for _, data in flight.chunks]
        aside.sizes = [len(chunk) for chunk in chunks]
        aside.turns.extend([turn, 1] for turn, _ in flight.chunks)
        if payload.response is not None:
            response = msgspec.structs.replace(payload.response, body=sha256(b"".join(chunks)))
            payload = msgspec.structs.replace(payload, response=response)
        bodies = InFlight(tape, payload.request.body, flight.body)
        yield Exchange(bodies, payload, aside, canonical(payload), canonical(aside), chunks)


class InFlight:
    """The bodies of an exchange in flight: that of its request is in the journal."""

    def __init__(self, tape: Landed, sha: str, body: bytes) -> None:
        self._tape = tape
        self._sha = sha
        self._body = body
        self.keeps_bodies = tape.keeps_bodies

    def blob(self, sha: str) -> bytes:
        """Return the body at an address, verified."""
        if sha != self._sha:
            return self._tape.blob(sha)
        if sha256(self._body) != sha:
            raise TapeError(f"tracefork: body {sha[:12]} in the journal is corrupt.")
        return self._body

    def steps_down_to(self, step: str | None) -> tuple[StepRecord, ...]:
        """Return the steps from the root down to this one."""
        return self._tape.steps_down_to(step)

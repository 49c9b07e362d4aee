"""Copy a tape: into one file that needs no other, maybe changed, or into another folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tracefork_core.errors import TapeError, UnwritableError
from tracefork_core.tape import checkpoint, state
from tracefork_core.tape.blobs import BLOB, Like, likes
from tracefork_core.tape.creation import drafted
from tracefork_core.tape.digest import canonical, chain, sha256
from tracefork_core.tape.event import EXCHANGE, RECEIPT, line
from tracefork_core.tape.exchange import Exchange
from tracefork_core.tape.file import Body, TapeFile
from tracefork_core.tape.reader import Tape
from tracefork_core.tape.schema import BESIDE, Mode

Document = dict[str, Any]
_BATCH = 256 * 1024


class Change:
    """What `rewrite` changes. This class changes nothing."""

    def exchange(
        self, exchange: Exchange, payload: Document, aside: Document
    ) -> tuple[bytes, list[bytes]]:
        """Change the two documents of an exchange in place and return its bodies.

        These are the request's body, and the response's in the pieces in which it arrived. Their
        addresses and sizes go into the documents afterwards.
        """
        return bodies(exchange)

    def event(self, kind: str, payload: Document, aside: Document) -> None:
        """Change the two documents of any other event in place."""

    def body(self, data: bytes) -> bytes:
        """Return the replacement for a body that belongs to no exchange."""
        return data

    def value(self, data: bytes) -> bytes:
        """Return the replacement for a value of a checkpoint."""
        return data


def bodies(exchange: Exchange) -> tuple[bytes, list[bytes]]:
    """Return the body of a request, and that of its response in pieces; empty if missing."""
    if not exchange.has_bodies:
        return b"", []
    return exchange.request_body, exchange.chunks if exchange.payload.response else []


def decoded(document: bytes | msgspec.Raw) -> Document:
    """Return a document of an event with all its fields, known here or not.

    Raises:
        TapeError: the document is corrupt.
    """
    try:
        return msgspec.json.decode(document, type=Document)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise TapeError(
            f"tracefork: the tape is corrupt: an event cannot be read: {error}."
        ) from error


def rewrite(
    tape: Tape, target: Path, change: Change | None = None, *, mode: Mode | None = None
) -> str:
    """Write everything on a tape to a new file and return the digest of what it holds.

    A branch is joined with what it needs from its parents. Unknown events and fields are kept. A
    tape that was cut off stays incomplete.

    Args:
        tape: the tape to read.
        target: the file to write.
        change: what to change in the copy.
        mode: the mode of the new tape, if it differs from the old one.

    Raises:
        UsageError: the new file exists.
        TapeError: the tape cannot be read, or the new one not written.
    """
    # Drafted, because half a copy would look like a recording that was cut off.
    with drafted(target) as draft:
        file = TapeFile(draft, mode=mode or tape.mode, key=tape.key)
        try:
            return _Copy(tape, file, change or Change()).run()
        except BaseException:
            file.close()
            raise


class _Copy:
    """One tape on its way into another file."""

    def __init__(self, tape: Tape, file: TapeFile, change: Change) -> None:
        self._tape = tape
        self._file = file
        self._change = change
        self._lines: list[bytes] = []
        self._bodies: list[Body] = []
        self._waiting = 0
        self._copied: set[str] = set()

    def run(self) -> str:
        """Copy everything and return the digest."""
        tape = self._tape
        receipts = []
        for event in tape.events:
            documents = decoded(event.payload), decoded(event.aside)
            if event.kind == RECEIPT:
                receipts.append(documents)
            elif event.kind not in (EXCHANGE, BLOB):
                self._event(event.kind, *documents)
        payloads = [self._exchange(exchange) for exchange in tape.exchanges]
        for sha in tape.blobs:
            if sha not in self._copied:
                self._body(self._change.body(tape.blob(sha)), ("", ""))
        self._flush()
        digest = chain(payloads)
        if not tape.complete or not receipts:
            self._file.leave()
            return digest
        payload, aside = receipts[-1]
        aside |= {"digest": digest, "exchanges": len(payloads)}
        self._change.event(RECEIPT, payload, aside)
        self._file.finish(line(RECEIPT, canonical(payload), canonical(aside)), len(payloads))
        return digest

    def _exchange(self, exchange: Exchange) -> bytes:
        """Copy an exchange with its bodies and return its payload."""
        payload, aside = decoded(exchange.canonical), decoded(exchange.beside)
        request, pieces = self._change.exchange(exchange, payload, aside)
        if exchange.has_bodies:
            asked, answered = likes(exchange.request, exchange.lane)
            self._copied |= {exchange.request.body}
            payload["request"]["body"] = self._body(request, asked)
            if exchange.payload.response is not None:
                self._copied |= {exchange.payload.response.body}
                payload["response"]["body"] = self._body(b"".join(pieces), answered)
                aside["sizes"] = [len(piece) for piece in pieces]
        self._line(EXCHANGE, payload, aside)
        return canonical(payload)

    def _event(self, kind: str, payload: Document, aside: Document) -> None:
        if kind in checkpoint.EVENTS:
            self._values(kind, checkpoint.values_in(aside))
        elif kind == state.STATE:
            self._values(kind, state.values_in(aside))
        self._change.event(kind, payload, aside)
        self._line(kind, payload, aside)

    def _values(self, kind: str, values: Iterator[tuple[str, list[str]]]) -> None:
        """Copy the values that an event names, and put their new addresses into it."""
        for name, value in values:
            data = self._tape.blob(value[1])
            self._copied.add(value[1])
            value[1] = self._body(self._change.value(data), (f"{kind} {name}", ""))

    def _line(self, kind: str, payload: Document, aside: Document) -> None:
        self._lines.append(line(kind, canonical(payload), canonical(aside)))
        self._wait(len(self._lines[-1]))

    def _body(self, data: bytes, like: Like) -> str:
        sha = sha256(data)
        self._bodies.append((data, sha, like))
        self._wait(len(data))
        return sha

    def _wait(self, size: int) -> None:
        self._waiting += size
        if self._waiting > _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._file.commit(b"".join(self._lines), self._bodies)
        self._lines, self._bodies, self._waiting = [], [], 0


def lay_beside(tape: Path, folder: Path) -> Path:
    """Put a tape and its parents into another folder, so that branches can lie beside it there.

    A closed tape gets a hard link, which takes no room; a tape that was cut off is copied. Returns
    the new path.

    Raises:
        TapeError: the file is not a tape, is corrupt, or cannot be copied.
    """
    with Tape.open(tape) as opened:
        names = [tape.name, *opened.needs]
    for name in names:
        for suffix in ("", *BESIDE):
            file, target = tape.with_name(name + suffix), folder / (name + suffix)
            if not file.exists():
                continue
            try:
                if _is_open(tape.with_name(name)):
                    raise OSError("two names of one open tape would have two logs")
                os.link(file, target)
            except OSError:
                _copy(file, target)
    return folder / tape.name


def _copy(file: Path, target: Path) -> None:
    try:
        shutil.copy2(file, target)
    except OSError as error:
        target.unlink(missing_ok=True)
        raise UnwritableError(f"tracefork: cannot write {target}: {error.strerror}.") from error


def _is_open(tape: Path) -> bool:
    with Tape.open(tape) as opened:
        return not opened.complete

"""A tape that may still be recorded, as rows that come in.

A viewer asks what is new since its last look. Rows before the first exchange in flight stay as they
are. The rows from there on are made again at each look: an answer may still grow, and exchanges
behind it may have landed before it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tracefork_core.blaming.report import FILE
from tracefork_core.blaming.trials.trial_journal import latest
from tracefork_core.cli.report import branch_strip
from tracefork_core.cli.report.blocks import Blocks
from tracefork_core.cli.report.document import Branch, Index, Outcome, Parent, Run, Step
from tracefork_core.cli.report.packing import Parts
from tracefork_core.cli.report.run_data import head_of, lasted
from tracefork_core.cli.view.folder import State, state_of
from tracefork_core.errors import TraceforkError
from tracefork_core.tape import Exchange, Tape
from tracefork_core.tape.schema import beside

_SPARSE = ("errors", "marks")
_COLUMNS = tuple(
    name for name in Index.__struct_fields__ if name not in (*_SPARSE, "steps", "edges")
)
_AT_ONCE = 0.1
"""After so many seconds of reading, the viewer gets what was read so far."""
_NOT_ENDED = "The recording has not ended, or it was cut off."
_TAILS = 32
"""Blocks of earlier looks stay there for a while: a viewer may be about to ask for them."""


class Growth(msgspec.Struct, frozen=True, kw_only=True, rename={"start": "from"}):
    """What is new of a run. `page/src/data.d.ts` describes it.

    Attributes:
        recording: a number that changes when the tape is recorded again. Nothing stays then.
        start: the rows before it stay. The columns of `index` begin there.
        run: the run as a whole.
        index: the rows from there on; its steps are empty.
        steps: the steps that are new or have changed, by their numbers.
        open: whether the recording has not been closed.
        in_flight: how many exchanges have no end yet.
        left: how many exchanges are on the tape and not told yet.
        quiet: milliseconds since anything was written.
        problem: why the tape cannot be read, if so.
    """

    recording: int
    start: int
    run: Run | None
    index: Index | None
    steps: list[tuple[int, Step]]
    open: bool
    in_flight: int
    left: int
    quiet: int
    problem: str | None = None


@dataclass(slots=True)
class Seen:
    """What one viewer was told."""

    recording: int = -1
    look: int = -1
    rows: int = 0
    steps: list[Step] = field(default_factory=list)


class Growing:
    """Reads one tape for all of its viewers. Safe to use from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._files: object = None
        self._tape: Tape | None = None
        self._began: object = None
        self._problem: str | None = None
        self._recording = self._look = 0
        self._changed = time.monotonic()
        self._reset()

    def _reset(self) -> None:
        """Forget what was read: there is another recording now."""
        self._blocks: Blocks | None = None
        self._parts, self._tails = Parts(), OrderedDict[str, bytes]()
        self._rows = 0
        self._tail: Blocks | None = None
        self._run: Run | None = None
        self._in_flight = self._left = 0
        self._strip: Branch | None = None
        self._recording += 1

    def look(self) -> bool:
        """Read what was written since the last look; return whether there is more to read."""
        with self._lock:
            files = _files(self.path)
            if files != self._files:
                self._files, self._changed = files, time.monotonic()
                self._open()
            elif not self._left:
                return False
            try:
                self._read()
            except TraceforkError as error:
                self._problem = str(error).removeprefix("tracefork: ")
                self._left = 0
            self._look += 1
            return self._left > 0

    def since(self, seen: Seen, *, parent: int | None = None) -> Growth | None:
        """Return what a viewer was not told yet, and note that it is; None if there is nothing."""
        with self._lock:
            if (seen.recording, seen.look) == (self._recording, self._look):
                return None
            start = seen.rows if seen.recording == self._recording else 0
            known = seen.steps if seen.recording == self._recording else []
            seen.recording, seen.look, seen.rows = self._recording, self._look, self._rows
            quiet = round((time.monotonic() - self._changed) * 1000)
            run, index, steps = self._run, self._index(start), self._steps()
            if run is not None and parent is not None:
                run = msgspec.structs.replace(run, parent=Parent(parent, self._first))
            seen.steps = steps
            return Growth(
                recording=self._recording,
                start=start,
                run=run,
                index=index,
                steps=_changed(known, steps),
                open=self._tape is not None and not self._tape.complete,
                in_flight=self._in_flight,
                left=self._left,
                quiet=quiet,
                problem=self._problem,
            )

    @property
    def has_ended(self) -> bool:
        """Whether all of it was read, and no more will come."""
        with self._lock:
            return self._tape is not None and self._tape.complete and not self._left

    def part(self, name: str) -> bytes | None:
        """Return a packed part; None if it is not there, or not any more."""
        with self._lock:
            return self._tails.get(name) or self._parts.get(name)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._tape is not None:
                self._tape.close()
            self._tape = None

    def _open(self) -> None:
        """Open the tape as it is now."""
        before, self._problem, tape = self._tape, None, None
        try:
            tape = Tape.open(self.path)
            exchanges = tape.exchanges
        except TraceforkError as error:
            self._problem = str(error).removeprefix("tracefork: ")
            if tape is not None:
                tape.close()
            return
        if before is not None:
            before.close()
        self._tape = tape
        environment = tape.environment
        began = environment.started if environment else None, tape.origin
        if began != self._began or len(exchanges) < self._rows + self._first:
            self._began = began
            self._reset()

    @property
    def _first(self) -> int:
        """The first exchange that is not its parent's."""
        return self._tape.origin.at if self._tape is not None and self._tape.origin else 0

    def _read(self) -> None:
        tape = self._tape
        if tape is None:
            return
        exchanges, first = tape.exchanges, self._first
        blocks = self._blocks
        if blocks is None or not self._rows:
            # Times count from the first exchange, which may not have been there at the last look.
            began = exchanges[0].aside.started if exchanges else 0
            blocks = self._blocks = Blocks(tape, tape.steps, self._parts, began=began, content=True)
        else:
            blocks.meet(tape.steps)
        landed = next((one.n for one in exchanges[first:] if _is_open(one)), len(exchanges))
        until = time.monotonic() + _AT_ONCE
        at = first + self._rows
        while at < landed and time.monotonic() < until:
            blocks.add(exchanges[at])
            at += 1
        self._rows, self._left = at - first, landed - at
        self._in_flight = sum(map(_is_open, exchanges[landed:]))
        parts = Parts(f"t{self._recording}-{self._look}-", level=1)
        tail = blocks.ahead(parts)
        if not self._left:
            for exchange in exchanges[landed:]:
                tail.add(exchange)
        tail.close()
        for name, packed in parts:
            self._tails[name] = packed
        while len(self._tails) > _TAILS and next(iter(self._tails)) not in dict(tail.ids).values():
            self._tails.popitem(last=False)
        self._tail = tail
        self._run = self._head(tape, blocks, tail)

    def _head(self, tape: Tape, blocks: Blocks, tail: Blocks) -> Run:
        """Return the totals and facts of the part of the run that was read."""
        errors = blocks.index.errors | tail.index.errors
        took = max(lasted(blocks.index), lasted(tail.index))
        run = head_of(tape, tail, errors, took, content=True)
        if not tape.complete:
            outcome = Outcome(ok=False, words="not ended")
            finding = msgspec.structs.replace(run.finding, line=_NOT_ENDED)
            return msgspec.structs.replace(run, outcome=outcome, finding=finding)
        if self._left or tape.origin is None:
            return run
        if self._strip is None:
            self._strip = branch_strip.strip(tape, content=True)
        return msgspec.structs.replace(run, branch=self._strip)

    def _index(self, start: int) -> Index | None:
        """Return the rows from `start` on, and the edges that lead to them."""
        blocks, tail = self._blocks, self._tail
        if blocks is None or tail is None:
            return None
        index = Index()
        for name in _COLUMNS:
            setattr(index, name, getattr(blocks.index, name)[start:] + getattr(tail.index, name))
        first = self._first + start
        for name in _SPARSE:
            all_of_them = getattr(blocks.index, name) | getattr(tail.index, name)
            setattr(index, name, {n: one for n, one in all_of_them.items() if int(n) >= first})
        index.edges = [edge for edge in [*blocks.edges, *tail.edges] if edge.end >= first]
        return index

    def _steps(self) -> list[Step]:
        return [] if self._blocks is None else self._blocks.index.steps


def _changed(known: list[Step], steps: list[Step]) -> list[tuple[int, Step]]:
    """Return the steps that are new, or that have ended since."""
    told = len(known)
    return [(i, one) for i, one in enumerate(steps) if i >= told or one != known[i]]


def _is_open(exchange: Exchange) -> bool:
    return exchange.end == "open"


def _files(path: Path) -> tuple[State, ...]:
    """Return what changes when anything about a tape is written: its files, and its blame."""
    files = (path, beside(path, "-wal"), beside(path, "-flight"), latest(path) / FILE)
    return tuple(map(state_of, files))

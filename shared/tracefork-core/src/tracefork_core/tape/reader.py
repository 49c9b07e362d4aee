"""Read a tape: its exchanges, steps, draws, checkpoints and receipt."""

from __future__ import annotations

import sqlite3
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import msgspec

from tracefork_core.errors import TapeError
from tracefork_core.printable import printable
from tracefork_core.tape import schema
from tracefork_core.tape.blobs import EMPTY
from tracefork_core.tape.branches import on_branch
from tracefork_core.tape.checkpoint import EVENTS, CheckpointEvent
from tracefork_core.tape.contents import CORRUPT, Contents, Head, described
from tracefork_core.tape.digest import chain
from tracefork_core.tape.event import (
    BRANCH,
    DRAWS,
    ENVIRONMENT,
    EXCHANGE,
    RECEIPT,
    STEP,
    STEP_END,
    TURNS,
    Branch,
    Draws,
    Environment,
    Event,
    ExchangeAside,
    ExchangePayload,
    Moved,
    Reads,
    Receipt,
    StepEnd,
    StepRecord,
    Stop,
    Structure,
    steps_down_to,
)
from tracefork_core.tape.exchange import Exchange
from tracefork_core.tape.imported import IMPORTED, Imported
from tracefork_core.tape.journal import exchanges_in_flight
from tracefork_core.tape.served import SERVED, Served
from tracefork_core.tape.state import STATE, StateRead
from tracefork_core.tape.surroundings import (
    FILES,
    INPUT,
    SURROUNDINGS,
    Files,
    FileState,
    Input,
    Seen,
    Surroundings,
)

_payload = msgspec.json.Decoder(ExchangePayload).decode
_aside = msgspec.json.Decoder(ExchangeAside).decode
_structure = msgspec.json.Decoder(Structure).decode
_moved = msgspec.json.Decoder(Moved).decode


class Tape:
    """An open tape, read-only. A context manager.

    Attributes:
        path: the path that it was opened with.
        complete: whether the recording was closed. A tape that a crash cut off is not complete.
        mode: what it stores; see `schema.Mode`.
        origin: the tape that it is a branch of, if any.
        key: the key of a sealed tape, if this environment can unwrap it.
    """

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._head = head = Head(path, db)
        self.complete, self.mode, self.key = head.complete, head.mode, head.key
        self.origin = head.origin
        self._contents = Contents(path, db, head, self._of_parent if self.origin else None)

    def __repr__(self) -> str:
        return f"<Tape {self.path}: {len(self.exchanges)} exchanges>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the first exchanges, one row each."""
        from tracefork_core.tape.notebook import of_tape

        return of_tape(self)

    @classmethod
    def open(cls, path: str | Path) -> Tape:
        """Open a tape.

        Raises:
            UsageError: no such file exists.
            TapeError: the file is not a tape, or is corrupt.
        """
        path = Path(path)
        db = schema.open_readonly(path)
        try:
            return cls(path, db)
        except (sqlite3.Error, *CORRUPT) as error:
            db.close()
            raise TapeError(f"tracefork: {path} is corrupt: {described(error)}.") from error
        except BaseException:
            db.close()
            raise

    def close(self) -> None:
        """Close the file and its parent's, once no thread is reading them."""
        self._contents.close()
        if (parent := self.__dict__.get("_parent")) is not None:
            parent.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @cached_property
    def exchanges(self) -> list[Exchange]:
        """The exchanges in the order asked, including those in flight at a crash."""
        read = self._contents.read
        exchanges = [
            Exchange(self, read(_payload, payload), read(_aside, aside), payload, aside)
            for payload, aside in self._contents.of_kind(EXCHANGE)
        ]
        if not self.complete:
            landed = {exchange.n for exchange in exchanges}
            with self._contents.naming_tape():
                flights = self._contents.flights()
                exchanges.extend(exchanges_in_flight(self, flights, landed))
        exchanges.sort(key=lambda exchange: exchange.n)
        if self.origin is not None:
            shared = self._parent.exchanges[: self.origin.at]
            moves = self._contents.asides(TURNS, _moved)
            exchanges = [*on_branch(shared, moves), *exchanges]
        for n, exchange in enumerate(exchanges):
            self._check(n, exchange)
        return exchanges

    @cached_property
    def steps(self) -> list[StepRecord]:
        """The steps in the order they began."""
        ended_as = self._contents.asides(STEP_END, msgspec.json.Decoder(StepEnd).decode)
        ends = {end.id: end for end in ended_as}
        begun = self._contents.asides(STEP, msgspec.json.Decoder(StepRecord).decode)
        return [_ended(step, ends.get(step.id)) for step in begun]

    @property
    def draws(self) -> list[Reads]:
        """The draws, in the order they were written."""
        return self.chance.reads

    @property
    def chance(self) -> Draws:
        """All draws on the tape, merged into one record."""
        drawn = list(self._contents.asides(DRAWS, msgspec.json.Decoder(Draws).decode))
        return Draws(
            reads=[reads for draws in drawn for reads in draws.reads],
            seed=next((draws.seed for draws in drawn if draws.seed), None),
            generators=[state for draws in drawn for state in draws.generators],
            ambient=next((draws.ambient for draws in drawn if draws.ambient is not None), None),
        )

    @property
    def surroundings(self) -> list[Seen]:
        """What the agent read from its surroundings, in order."""
        looks = self._contents.asides(SURROUNDINGS, msgspec.json.Decoder(Surroundings).decode)
        return [seen for look in looks for seen in look.seen]

    @property
    def standard_input(self) -> list[Input]:
        """What was read from standard input, in order."""
        return list(self._contents.asides(INPUT, msgspec.json.Decoder(Input).decode))

    @property
    def files(self) -> list[FileState]:
        """The files that the run read and wrote, and the modules of the agent."""
        noted = self._contents.asides(FILES, msgspec.json.Decoder(Files).decode)
        return [file for event in noted for file in event.files]

    @cached_property
    def checkpoints(self) -> list[CheckpointEvent]:
        """The checkpoint events of a framework, in the order in which they happened."""
        return [
            self._contents.read(msgspec.json.Decoder(EVENTS[event.kind]).decode, bytes(event.aside))
            for event in self.events
            if event.kind in EVENTS
        ]

    @cached_property
    def states(self) -> list[StateRead]:
        """What the run read of state that outlives it, in the order in which it was noted."""
        return list(self._contents.asides(STATE, msgspec.json.Decoder(StateRead).decode))

    @property
    def environment(self) -> Environment | None:
        """Where the recording was made."""
        return self._contents.last(ENVIRONMENT, msgspec.json.Decoder(Environment).decode)

    @property
    def hash_seed(self) -> str | None:
        """The PYTHONHASHSEED of the recording; None if hashes were random or it is unknown."""
        return self.environment.hash_seed if self.environment else None

    @property
    def branch(self) -> Branch | None:
        """What the fork changed that made this branch; None if no fork made it."""
        return self._contents.last(BRANCH, msgspec.json.Decoder(Branch).decode)

    @property
    def stop(self) -> Stop | None:
        """The request that the fork stopped before which made this branch; None if it did not."""
        branch = self.branch
        return branch.stop if branch is not None else None

    @property
    def receipt(self) -> Receipt | None:
        """The receipt of the recording; None while it is incomplete."""
        return self._contents.last(RECEIPT, msgspec.json.Decoder(Receipt).decode)

    @property
    def is_cut_off(self) -> bool:
        """Whether the recording ended before the agent did, by a crash or by Ctrl-C."""
        return self.receipt is None or self.receipt.outcome == KeyboardInterrupt.__name__

    @property
    def served(self) -> Served | None:
        """The request or task of a service that was recorded; None for any other run.

        A branch has that of its parent, whose response is not the branch's.
        """
        if self.origin is not None:
            served = self._parent.served
            return served and msgspec.structs.replace(served, status=None, answer=None)
        return self._contents.last(SERVED, msgspec.json.Decoder(Served).decode)

    @property
    def imported(self) -> Imported | None:
        """Where the run was imported from, and how much of it; None of a run recorded here."""
        if self.origin is not None:
            return self._parent.imported
        return self._contents.last(IMPORTED, msgspec.json.Decoder(Imported).decode)

    @cached_property
    def digest(self) -> str:
        """The digest of the run, computed from the exchanges (not read from the receipt)."""
        return chain(exchange.canonical for exchange in self.exchanges)

    @property
    def keeps_bodies(self) -> bool:
        """Whether the tape stores bodies, and not only their hashes."""
        return self.mode != "metadata"

    def blob(self, sha: str) -> bytes:
        """Return the body at an address, verified."""
        if sha != EMPTY and not self.keeps_bodies:
            raise TapeError(
                f"tracefork: {self.path} stores hashes instead of bodies (mode metadata)."
            )
        return self._contents.blob(sha)

    @property
    def blobs(self) -> list[str]:
        """The addresses of all bodies, in the order they were written."""
        return self._contents.addresses()

    @property
    def events(self) -> list[Event]:
        """All events, of any kind, as they were written."""
        return self._contents.events()

    def steps_down_to(self, step: str | None) -> tuple[StepRecord, ...]:
        """Return the steps from the root down to this one."""
        return steps_down_to(step, self._steps_by_id)

    def step_path(self, step: str | None) -> tuple[str, ...]:
        """Return the names of the steps from the root down to this one."""
        return tuple(record.name for record in self.steps_down_to(step))

    @cached_property
    def _steps_by_id(self) -> dict[str, StepRecord]:
        return {step.id: step for step in self.steps}

    def _check(self, n: int, exchange: Exchange) -> None:
        """Refuse what no recorder writes, before a replay relies on it."""
        turns = exchange.aside.turns
        deliveries = len(exchange.aside.sizes) + 2  # a head, chunks, an end
        if exchange.n != n:
            raise TapeError(f"tracefork: {self.path} is corrupt: exchange {n} is missing.")
        if any(len(run) != 2 or min(run) < 0 for run in turns) or (
            sum(count for _, count in turns) > deliveries
        ):
            raise TapeError(f"tracefork: {self.path} is corrupt: exchange {n} has invalid turns.")
        try:
            for url in {exchange.url, exchange.request.url}:
                urlsplit(url)
        except ValueError as error:
            raise TapeError(
                f"tracefork: {self.path} is corrupt: exchange {n} has an invalid URL: "
                f"{printable(str(error))}."
            ) from error

    @property
    def parent(self) -> Tape | None:
        """The tape that this one is a branch of, if any. It closes with this one."""
        return self._parent if self.origin else None

    @cached_property
    def _parent(self) -> Tape:
        """The tape that this one is a branch of; it must be unchanged since."""
        assert self.origin is not None
        path = self.path.with_name(self.origin.name)
        if not path.is_file():
            raise TapeError(
                f"tracefork: {self.path} is a branch of {path.name}, which is not in the same "
                "folder. Put it there. (`tracefork pack` makes one file of a branch and its "
                "parents.)"
            )
        parent = Tape.open(path)
        try:
            # Each parent names fewer ancestors: so no tape is its own ancestor.
            shared = (
                parent.exchanges[: self.origin.at] if parent.needs == self.origin.line else None
            )
            if shared is None or (
                chain(exchange.canonical for exchange in shared) != self.origin.digest
            ):
                raise TapeError(
                    f"tracefork: {self.path} is a branch of {parent.path}, which was changed or "
                    "recorded again since. Put the original tape there."
                )
        except BaseException:
            parent.close()
            raise
        return parent

    def _of_parent(self, sha: str) -> bytes:
        return self._parent.blob(sha)

    @property
    def needs(self) -> list[str]:
        """The names of the tapes in the same folder that a branch needs, nearest first."""
        return self.origin.names if self.origin else []

    @property
    def structure(self) -> Structure | None:
        """What a closed sealed tape reveals without its key."""
        document = self._head.structure
        return None if document is None else self._contents.read(_structure, document)

    @property
    def opens(self) -> bool:
        """Whether the tape can be read here: it is not sealed, or its key is available."""
        return self._head.opens


def _ended(step: StepRecord, end: StepEnd | None) -> StepRecord:
    """Return a step with its end, if it ended."""
    if end is None:
        return step
    kind = end.kind or step.kind
    return msgspec.structs.replace(step, kind=kind, ended=end.ended, error=end.error)

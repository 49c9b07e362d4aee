"""Go on from another place of a recording than the recorded run did."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from tracefork_core.checkpoints.contract import Checkpoints
from tracefork_core.checkpoints.lineage import (
    Lineage,
    exchanges_after,
    lineage_of,
    stores_of,
)
from tracefork_core.errors import UsageError
from tracefork_core.exchange.lane import MAIN, UNORDERED, Anew
from tracefork_core.order.turns import turns_of
from tracefork_core.order.turnstile import Turnstile
from tracefork_core.session.session_checkpoints import Run, SessionCheckpoints
from tracefork_core.session.tape_source import Source
from tracefork_core.tape import Tape


class Travelling(Run, Protocol):
    """What this needs of a session."""

    turnstile: Turnstile
    anew: tuple[Anew, ...]

    def check(self) -> None: ...


class Travels:
    """The checkpoints of one session, and the ways it takes through its recording.

    `lock` is the session's: exchanges are asked for by other threads meanwhile. `moved` are called
    with the moment of the recording that a run goes on from, in nanoseconds since the epoch.
    """

    def __init__(
        self, session: Travelling, source: Source | None, lock: AbstractContextManager[object]
    ) -> None:
        self._session = session
        self._source = source
        self._lock = lock
        self._by_path: dict[Path, SessionCheckpoints] = {}
        self.moved: list[Callable[[int], None]] = []

    def checkpoints(self, path: Path) -> SessionCheckpoints:
        """Return the checkpoints of this run, which a recorded one keeps at `path` as well."""
        with self._lock:
            if self._source is not None:
                return self._recorded(self._source.tape, path)
            if (where := path.absolute()) not in self._by_path:
                if path.name in (one.name for one in self._by_path):
                    raise UsageError(
                        f"tracefork: two checkpointers of this run have files called {path.name}: "
                        "on its tape they could not be told apart."
                    )
                own = self._own(where)
                self._by_path[where] = SessionCheckpoints(self, own, path.name, None)
            return self._by_path[where]

    def _recorded(self, tape: Tape, path: Path) -> SessionCheckpoints:
        """Return the checkpoints that a tape answers with: those of a file of this name.

        Where the run had one file, whatever it is called now.
        """
        from tracefork_core.checkpoints.store import in_memory

        names = stores_of(tape)
        name = path.name if path.name in names or not names else names[0]
        if path.name != name and len(names) > 1:
            raise UsageError(
                f"tracefork: the run on {tape.path} kept checkpoints in {', '.join(names)}, and "
                f"not in {path.name}: name one of these."
            )
        if (where := Path(name)) not in self._by_path:
            lineage = lineage_of(tape, name)
            own = in_memory(tape.blob)  # Who is answered from a tape touches nothing else.
            self._by_path[where] = SessionCheckpoints(self, own, name, lineage)
        return self._by_path[where]

    def depart(self) -> None:
        """Leave the way of the recorded run: nothing of it has to be asked for any more.

        From then on nothing has an order but that of each lane: the recorded one was another's.
        """
        assert self._source is not None
        self._source.is_travelled = True
        self._session.turnstile.break_open()

    def travel(
        self, lineage: Lineage, thread: str, at: str | None, made: int, *, resumed: bool
    ) -> list[int]:
        """Go on from a recorded checkpoint, made at `made`; return the exchanges it skips."""
        source = self._source
        assert source is not None
        self._session.check()
        exchanges = source.tape.exchanges
        recorded = [(one.n, one.checkpoint) for one in exchanges]
        since = lineage.made(thread, at) if at is not None else None
        first = next((one.n for one in exchanges if since and one.aside.started >= since), None)
        left, gone = exchanges_after(lineage, recorded, thread, at, resumed=resumed, first=first)
        with self._lock:
            skipped = source.travel(left, gone, lineage.forked_from)
            self.draw_anew(made)
        for move in self.moved:
            move(made)
        return skipped

    def skip(self, exchanges: Sequence[int], made: int) -> None:
        """Go past exchanges as the recorded run did, which travelled to what was made at `made`."""
        assert self._source is not None
        with self._lock:
            self.draw_anew(made)
            self._source.skip(exchanges)
        numbers = set(exchanges)
        skipped = [one for one in self._source.tape.exchanges if one.n in numbers]
        self._session.turnstile.give_up(turn for turn, _ in turns_of(skipped))

    def draw_anew(self, made: int) -> None:
        """Draw other ids and random values than the run that led to the checkpoint.

        It has used up what comes first, and its ids are in the state: a message with the id of
        another one would take its place.
        """
        before = "".join(anew.salt for anew in self._session.anew)
        self._session.anew = (Anew(f"{before}{made:x}", 0, {MAIN, UNORDERED}),)

    @property
    def run(self) -> Run:
        """The session."""
        return self._session

    def _own(self, path: Path) -> Checkpoints:
        """Return where a recorded run keeps its checkpoints besides its tape."""
        from tracefork_core.checkpoints.store import checkpoint_file, in_memory

        tape = self._session.sink.tape
        is_tape = tape is not None and os.path.realpath(tape.path) == os.path.realpath(path)
        return in_memory() if is_tape else checkpoint_file(path)

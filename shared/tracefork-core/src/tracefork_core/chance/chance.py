"""All randomness and time of one run: its clock, its entropy, and `run.nondet`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

from tracefork_core.chance import clock as wall_clock
from tracefork_core.chance import entropy as entropies
from tracefork_core.chance import process_entropy
from tracefork_core.chance.clock import RecordedClock
from tracefork_core.chance.entropy import RecordedEntropy, real_urandom
from tracefork_core.chance.generators import SEED_BYTES
from tracefork_core.chance.nondet_source import NondetSource, OnTape
from tracefork_core.chance.numpy_random import NumpyGenerator
from tracefork_core.exchange.contract import Session
from tracefork_core.patching import real_clock
from tracefork_core.tape.event import DRAWS, Draws
from tracefork_core.tape.writer import TapeWriter


class Chance:
    """The clock and the entropy of a run: written to a tape, `recorded` on one, or both in a fork.

    A fork draws the values of its parent, so that it differs only by what was changed. When the
    tape has no value left for a lane and a call site, the clock continues from there in real time,
    and the streams of bytes continue.

    Attributes:
        ambient: the process-wide sources that are patched: "clock", "entropy".
        replaced: those of their functions that the program had replaced as the run began or ended.
        nondet: the source that the agent calls by name, with nothing patched.
    """

    def __init__(
        self, session: Session, recorded: Draws | None = None, *, forked: bool = False
    ) -> None:
        seed = (recorded.seed if recorded else None) or real_urandom(SEED_BYTES)
        self.clock = RecordedClock(session, recorded.reads if recorded else None, forked=forked)
        self.entropy = RecordedEntropy(session, seed, recorded, forked=forked)
        self.numpy = NumpyGenerator(self.entropy)
        self.nondet: NondetSource = OnTape(session, self.clock, self.entropy)
        self.ambient: list[str] = []
        self.replaced: list[str] = []
        self._recorded = recorded
        self._described = self._seeded = False
        self._lock = threading.Lock()

    def switch_on(self, stack: ExitStack, *, clock: bool, entropy: bool) -> None:
        """Patch the process's clock and entropy: those that are asked for and were recorded."""
        if clock and self._was_on(wall_clock.SOURCE):
            self.ambient.append(wall_clock.SOURCE)
            self._look_now_and_later(stack, real_clock.replaced)
            wall_clock.start(self.clock)
            stack.callback(wall_clock.stop, self.clock)
        if entropy and self._was_on(entropies.SOURCE):
            self.ambient.append(entropies.SOURCE)
            self._look_now_and_later(stack, process_entropy.replaced)
            process_entropy.start(self.entropy)
            stack.callback(process_entropy.stop, self.entropy)
            stack.callback(self.numpy.off)
            self.numpy.on()

    def _look_now_and_later(self, stack: ExitStack, replaced: Callable[[], list[str]]) -> None:
        def look() -> None:
            self.replaced += [name for name in replaced() if name not in self.replaced]

        look()
        stack.callback(look)

    def flush(self, sink: TapeWriter) -> None:
        """Write the draws since the last flush to the tape, ahead of what depends on them."""
        with self._lock:
            reads, drawn = self.clock.fresh(), self.entropy.fresh()
            states = [*self.entropy.generators.fresh(), *self.numpy.fresh()]
            seeds = not self._seeded and (bool(drawn) or entropies.SOURCE in self.ambient)
            if reads or drawn or states or seeds:
                seed = self.entropy.seed if seeds else None
                ambient = None if self._described else self.ambient
                self._seeded, self._described = self._seeded or seeds, True
                sink.note(DRAWS, aside=Draws([*reads, *drawn], seed, states, ambient))

    def release(self) -> None:
        """Break the cycles of references, once the session has ended (see `Session.release`)."""
        self.entropy.generators.release()

    def _was_on(self, source: str) -> bool:
        recorded = self._recorded
        if recorded is None:
            return True
        if recorded.ambient is None:  # An older tape: the clock was patched if it was read.
            return any(reads.source == source for reads in recorded.reads)
        return source in recorded.ambient

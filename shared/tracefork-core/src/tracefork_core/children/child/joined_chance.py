"""Chance in a child process: what it draws is on the tape of its parent.

Entropy comes from the seed of the run, in streams of this process's own lanes. Of what was drawn
when the run was recorded, each lane asks when it draws for the first time.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

from tracefork_core.chance import clock as wall_clock
from tracefork_core.chance import entropy as entropies
from tracefork_core.chance import process_entropy
from tracefork_core.chance.clock import RecordedClock
from tracefork_core.chance.entropy import RecordedEntropy
from tracefork_core.chance.lane_generators import NAME as RANDOM
from tracefork_core.chance.lane_generators import LaneGenerators, packed
from tracefork_core.chance.numpy_random import HOME, NumpyGenerator
from tracefork_core.chance.seed_streams import SEED_BYTES, Streams, seeded
from tracefork_core.children.child.joined_session import Member
from tracefork_core.exchange.lane import current_lane
from tracefork_core.tape.event import Draws, GeneratorState, Reads


class JoinedChance:
    """The clock and the entropy of this process, switched on until they are switched off."""

    def __init__(self, member: Member) -> None:
        seed, sources = member.chance()
        self._member = member
        self._stack = stack = ExitStack()
        self._clock = JoinedClock(member)
        self._entropy = JoinedEntropy(member, seed)
        member.drawn.append(self.fresh)
        if wall_clock.SOURCE in sources:
            wall_clock.start(self._clock)
            stack.callback(wall_clock.stop, self._clock)
        if entropies.SOURCE in sources:
            stack.callback(process_entropy.stop, self._entropy)
            process_entropy.start(self._entropy)
            if HOME not in sys.modules:  # A forked child goes on with its parent's.
                numpy = NumpyGenerator(self._entropy)
                stack.callback(numpy.off)
                numpy.on()

    def off(self) -> None:
        """Put what was drawn on the tape, and leave the process's chance as it was."""
        self._member.flush()
        self._member.drawn.remove(self.fresh)
        self._stack.close()

    @property
    def misses(self) -> Counter[str]:
        """How many draws the tape had no value for, of the "clock" and of "entropy"."""
        return Counter(clock=self._clock.misses, entropy=self._entropy.misses)

    def fresh(self) -> list[Reads]:
        """Return what was drawn since the last time."""
        return [*self._clock.fresh(), *self._entropy.fresh()]


class _Memory:
    """What the tape knows of the lanes of this process."""

    def __init__(self, member: Member, give: Callable[[list[Reads]], None]) -> None:
        self._member = member
        self._give = give
        self._known: set[str] = set()

    def recall(self) -> None:
        """Ask for this lane, the first time."""
        lane = current_lane(self._member)
        if lane not in self._known:
            self._known.add(lane)
            if not self._member.invitation.records:
                self._give(self._member.recall(lane))


class JoinedClock(RecordedClock):
    """The wall clock of this process."""

    def __init__(self, member: Member) -> None:
        invited = member.invitation
        super().__init__(member, None if invited.records else (), forked=invited.forks)
        self._memory = _Memory(member, self.give)

    def read(self, site: str) -> int:
        self._memory.recall()
        return super().read(site)


class JoinedEntropy(RecordedEntropy):
    """The entropy of this process."""

    def __init__(self, member: Member, seed: bytes) -> None:
        self._home = member.invitation.lane
        recorded = None if member.invitation.records else Draws([])
        super().__init__(member, seed, recorded, forked=member.invitation.forks)
        self._memory = _Memory(member, self.give)
        # One state for all processes of the run, and none of their lanes goes on from it: which
        # worker of a pool does a job must not matter.
        state = packed(seeded(Streams(seed).draw("", "processes", SEED_BYTES)).getstate())
        begun = Draws([], generators=[GeneratorState(RANDOM, state)])
        self.generators = LaneGenerators(member, self._fallback, begun)

    def draw(self, site: str, size: int) -> bytes:
        self._memory.recall()
        return super().draw(site, size)

    def of_process(self, purpose: str, size: int) -> bytes:
        return Streams(self.seed).draw(self._home, purpose, size)

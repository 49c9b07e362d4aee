"""The clock and randomness of a child process, recorded on the tape of its parent.

Entropy comes from the seed of the run, in streams of this process's own lanes. At replay each lane
asks for its recorded values at its first draw.
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
from tracefork_core.chance.entropy import RecordedEntropy, Streams
from tracefork_core.chance.generators import NAME as RANDOM
from tracefork_core.chance.generators import SEED_BYTES, LaneGenerators, packed_state, seeded
from tracefork_core.chance.numpy_random import HOME, NumpyGenerator
from tracefork_core.children.child.joined_session import Member
from tracefork_core.exchange.lane import current_lane
from tracefork_core.tape.event import Draws, GeneratorState, Reads


class JoinedChance:
    """The recorded clock and entropy of this process, from creation to `off`."""

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
            process_entropy.start(self._entropy)
            stack.callback(process_entropy.stop, self._entropy)
            if HOME not in sys.modules:  # A forked child continues with its parent's.
                numpy = NumpyGenerator(self._entropy)
                stack.callback(numpy.off)
                numpy.on()

    def off(self) -> None:
        """Put the last draws on the tape, and restore the real clock and entropy."""
        self._member.flush()
        self._member.drawn.remove(self.fresh)
        self._stack.close()

    @property
    def misses(self) -> Counter[str]:
        """The number of draws for which the tape had no value, by source."""
        return Counter(clock=self._clock.misses, entropy=self._entropy.misses)

    def fresh(self) -> list[Reads]:
        """Return the draws since the last call."""
        return [*self._clock.fresh(), *self._entropy.fresh()]


class _Memory:
    """Fetches the recorded values of each lane once."""

    def __init__(self, member: Member, give: Callable[[list[Reads]], None]) -> None:
        self._member = member
        self._give = give
        self._known: set[str] = set()

    def recall(self) -> None:
        """Fetch the values of the current lane at its first draw."""
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
        # All processes of the run start from the same state, and their lanes do not continue it:
        # a job must draw the same in every worker of a pool.
        state = packed_state(seeded(Streams(seed).draw("", "processes", SEED_BYTES)).getstate())
        begun = Draws([], generators=[GeneratorState(RANDOM, state)])
        self.generators = LaneGenerators(member, self._fallback, begun)

    def draw(self, site: str, size: int) -> bytes:
        self._memory.recall()
        return super().draw(site, size)

    def of_process(self, purpose: str, size: int) -> bytes:
        return Streams(self.seed).draw(self._home, purpose, size)

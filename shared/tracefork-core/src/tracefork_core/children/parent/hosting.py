"""Let child processes join a session of this process."""

from __future__ import annotations

from contextlib import ExitStack

from tracefork_core.chance.chance import Chance
from tracefork_core.children import forks
from tracefork_core.children.environment import announce
from tracefork_core.children.invitation import Descent, Invitation
from tracefork_core.children.multiprocess import PROCESSES
from tracefork_core.children.parent.listener import Listener
from tracefork_core.children.parent.server import Host
from tracefork_core.egress.guard import Watch
from tracefork_core.exchange.lane import current_lane
from tracefork_core.session.session import Session
from tracefork_core.tape.event import DRAWS, Draws


class Hosting:
    """The child processes of one session; the door opens when the first is about to start."""

    def __init__(
        self,
        session: Session,
        chance: Chance,
        *,
        ambient: bool,
        tools: tuple[list[str], list[str]] = ([], []),
    ) -> None:
        self._session = session
        self._chance = chance
        self._watch: Watch | None = None
        home = Invitation(
            address="",
            token="",
            lane=current_lane(session),
            step=None,
            records=session.source is None,
            ambient=ambient,
            forks=session.fork is not None,
            tools=tools[0],
            tools_of=tools[1],
        )
        self.descent = Descent(session, home, self._open, self._opened)

    @property
    def clock_misses(self) -> int:
        """The number of clock reads in other processes for which the tape had no value."""
        return self.descent.clock_misses

    @property
    def entropy_misses(self) -> int:
        """The number of entropy draws in other processes for which the tape had no value."""
        return self.descent.entropy_misses

    def close_with(self, stack: ExitStack) -> None:
        """Close the door, then the session, and wait for children, when `stack` closes."""
        stack.callback(self.descent.wait)
        stack.callback(self._session.close)
        stack.callback(self._close)

    def begin(self, stack: ExitStack, watch: Watch) -> None:
        """Invite every process that starts from now on."""
        self._watch = watch
        for instrument in PROCESSES:
            instrument.on()
            stack.callback(instrument.off)
        forks.watch(self.descent)
        stack.callback(forks.forget, self.descent)

    def _open(self) -> Listener:
        source = self._session.source
        recorded = source.draws if source is not None else []
        return Listener(
            Host(
                self._session,
                seed=self._chance.entropy.seed,
                sources=self._chance.ambient,
                recall=lambda: recorded,
                put=self._put,
                learn=self._session.masking.take_in,
            )
        )

    def _opened(self, address: str) -> None:
        if self._watch is not None:
            self._watch.door = address
            announce()

    def _put(self, draws: Draws) -> None:
        self._session.sink.write(lambda tape: tape.note(DRAWS, aside=draws))

    def _close(self) -> None:
        self.descent.close()
        if self._watch is not None:
            self._watch.subprocesses.extend(self.descent.complaints)

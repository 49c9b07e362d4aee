"""This process as a child of a session: how it joins, moves to another lane, and leaves.

It joins for the rest of its life. Its clock and randomness are switched on at its first draw.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

from tracefork_core.children.child.joined_session import Member
from tracefork_core.children.invitation import Descent, Invitation
from tracefork_core.exchange.current import current_step, set_lane
from tracefork_core.exchange.lane import begun, opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.children.child.joined_chance import JoinedChance
    from tracefork_core.children.child.remote import Remote
    from tracefork_core.order.quiet import Gate

_stay = ExitStack()
"""Contexts of this process that are never left."""


class JoinedProcess:
    """This process as a member of one session. `descent` invites its own children."""

    def __init__(self, member: Member, descent: Descent) -> None:
        self.member = member
        self.descent = descent
        self.chance: JoinedChance | None = None
        self._missed: Counter[str] = Counter()
        self._reported: Counter[str] = Counter()

    def move(self, invitation: Invitation) -> None:
        """Move to the lane that was chosen when this process was started."""
        drew = self.chance is not None
        self.stop_chance()
        self.member.move(invitation)
        self.descent.home = invitation
        set_lane(begun(self.member, invitation.lane))
        current_step.set(invitation.step)
        if drew:
            self.start_chance()

    def start_chance(self) -> None:
        """Switch on the recorded clock and randomness."""
        from tracefork_core.children.child.joined_chance import JoinedChance

        if self.chance is None:
            self.chance = JoinedChance(self.member)

    def stop_chance(self) -> None:
        """Undo `start_chance`."""
        if self.chance is not None:
            self._missed += self.chance.misses
            self.chance.off()
            self.chance = None

    def leave(self) -> None:
        """Put the last draws on the tape as this process ends; can be called repeatedly."""
        if self.member.active:
            missed = self._missed + (self.chance.misses if self.chance else Counter())
            since, self._reported = missed - self._reported, missed
            self.member.leave(clock=since["clock"], entropy=since["entropy"])


def arrive(invitation: Invitation) -> Member:
    """Make the session of the parent current in this process."""
    member = Member(invitation, _join)
    _stay.enter_context(opened(member, invitation.lane, everywhere=True))
    current_step.set(invitation.step)
    return member


def _join(member: Member) -> Remote:
    from tracefork_core.children.child.remote import Remote

    return Remote(member, _gate)


def _gate(threads: set[int]) -> Gate:
    from tracefork_core.order.quiet import Gate
    from tracefork_core.order.thread_rest import Rest

    return Gate(Rest(threads))

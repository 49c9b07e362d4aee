"""What a Python child process is told about the session of its parent: enough to join it."""

from __future__ import annotations

from typing import NamedTuple


class Invitation(NamedTuple):
    """Where the parent's session is asked, and as whom.

    Attributes:
        address: path of a unix socket, or "127.0.0.1:port" where there are none.
        token: who does not know it is not listened to.
        lane: the lane of the process.
        step: the step that ran where the process was started.
        records: whether the session records; else it replays.
        forks: whether it replays and records: what is drawn goes onto a branch.
        ambient: whether HTTP libraries are instrumented.
    """

    address: str
    token: str
    lane: str
    step: str | None
    records: bool
    ambient: bool
    forks: bool = False

    def on(self, lane: str, step: str | None) -> Invitation:
        """Return the invitation for a process on another lane."""
        return self._replace(lane=lane, step=step)

    def through(self, address: str, token: str) -> Invitation:
        """Return the invitation through a door that is open by now."""
        return self._replace(address=address, token=token)

    def spelled(self) -> dict[str, object]:
        """Return what `read` takes, as JSON has it."""
        return self._asdict()

    @classmethod
    def read(cls, given: dict[str, object]) -> Invitation:
        """Return the invitation that `spelled` returned."""
        return cls(**given)  # type: ignore[arg-type]

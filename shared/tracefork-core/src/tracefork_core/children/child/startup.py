"""What a Python child process does as it starts, where its parent runs under a session."""

from __future__ import annotations

import atexit
import importlib.util
import sys

from tracefork_core.children import forks, instruments
from tracefork_core.children.child.arrival import Arrival, arrive
from tracefork_core.children.environment import hand_on
from tracefork_core.children.inheritance import Descent
from tracefork_core.children.protocol.invitation import Invitation
from tracefork_core.egress.guard import Watch

_NEEDED = ("msgspec", "time_machine")


def join(given: dict[str, object], watch: Watch) -> None:
    """Let what this process asks and draws be part of its parent's run."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        version = ".".join(str(part) for part in sys.version_info[:2])
        watch.report.write(
            programs=[f"python{version} (guarded, not recorded: no {' and no '.join(missing)})"]
        )
        return
    invitation = Invitation.read(given)
    member = arrive(invitation)
    descent = Descent(member, invitation)
    forks.arrivals.append(Arrival(member, descent))
    hand_on(watch, descent)
    forks.watch(descent)
    instruments.arm(invitation)
    atexit.register(forks.leave)

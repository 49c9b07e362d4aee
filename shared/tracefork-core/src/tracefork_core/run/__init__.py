"""Open a session, switch seams, clock and guard on, close with a receipt."""

from tracefork_core.run.record import Recording, record
from tracefork_core.run.replay import Replaying, replay

__all__ = ["Recording", "Replaying", "record", "replay"]

"""Open a session, switch seams, clock and guard on, close with a receipt."""

from tracefork_core.run.fork import Forking, fork
from tracefork_core.run.record import Recording, record
from tracefork_core.run.replay import Replaying, replay

__all__ = ["Forking", "Recording", "Replaying", "fork", "record", "replay"]

"""Decide what happens to an exchange: record it, answer it from the tape, or report a divergence.

`session` is the state machine. It writes to a `tape_sink` and reads from a `tape_source`. A request
gets a `live_exchange`, a `replayed_exchange` or a `prepared_exchange`, chosen by `answers`
(`forked_answers` in a fork); `auxiliary_answers` stand in for requests that need not be recorded.

A fork follows the plan in `forking`; `interventions` are what it may change and `intervening`
carries them out. `session_checkpoints` and `travel` deal with the saved states of a framework,
`steps` with its step DAG. `hang_warning` warns when a run has diverged and does not end.
"""

from tracefork_core.order.policies import Order
from tracefork_core.session.session import Session

__all__ = ["Order", "Session"]

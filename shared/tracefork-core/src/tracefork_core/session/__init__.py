"""What happens to an exchange: recorded, replayed, or diverged.

`session` decides. It writes its `sink` and answers from its `source`; what it hands out is a
`live_exchange`, a `replayed_exchange` or a `prepared_exchange`, by way of `answers`
(`forked_answers`); `auxiliary` stands in for what is on no tape and need not be.

Which recorded answer a request gets: `form` says what is compared, `matchers` what is not,
`matching` finds it. Where there is none: `divergence`, with `differences`, `hints` and
`provenance`. In which order things come: `turns`, `turnstile` (`forked_turnstile`), `reordered`;
the agent's own waiting is in `waits` (`forked_waits`); `quiet`, `rest`, `waking` and `pace` are how
one waits; `overtime` speaks of a run that never ends.

A fork: `forking` has its plan, `interventions` what it may change, `intervening` does it.
`checkpoints` and `travelling` are about the states of a framework, `steps` about whose exchange it
was.
"""

from tracefork_core.session.reordered import Order
from tracefork_core.session.session import Session

__all__ = ["Order", "Session"]

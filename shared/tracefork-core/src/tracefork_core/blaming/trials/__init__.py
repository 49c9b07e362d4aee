"""Run the forks that the engine asks for, within a budget, and journal each one.

`runner` runs probes on a `pool`; `trial` is one forked run, kept in the `trial_journal` before it
counts. `budget`, `rate_limit` and `call_tickets` limit live calls. `units` are what is ranked,
`live_part` is what a branch used, `estimate` the expected cost.
"""

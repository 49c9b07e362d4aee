"""Deliver answers at replay in the order in which they arrived when they were recorded.

`turns` holds the recorded order and what has come for each turn, and `turnstile` is where threads
and tasks wait for their turn. `policies` say which turn is next: in a replay, in a fork, or in
another order to hunt races. `overtaking` decides when the first in line may go ahead of the turn
that is due. The agent's own sleeps and timeouts have turns too: `waits` and, in a
fork, `forked_waits`; `endings` reads how they ended from a tape. `quiet` and `thread_rest` tell
when the effects of a delivery are done, and `pace` slows a replay down to the recorded speed.

Hooks feed the order: `waiting` watches sleeps and timers, `spawning` names tasks, threads and pool
jobs, `thread_pools` and `anyio_threads` the jobs of two more pools. `program_ends` sees
subprocesses exit, and `start_order` keeps sets of tasks in start order.
"""

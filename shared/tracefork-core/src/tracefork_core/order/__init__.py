"""Deliver answers at replay in the order in which they arrived when they were recorded.

`turns` holds the recorded order, and `turnstile` is where threads and tasks wait for their turn.
`forked_turnstile` mixes recorded and live deliveries, `reordered` delivers in another order to hunt
races. The agent's own sleeps and timeouts have turns too: `waits` and, in a fork, `forked_waits`.
`quiet` and `thread_rest` tell when the effects of a delivery are done, `pace` slows a replay down
to the recorded speed, `waking` wakes a waiting thread or task.

Hooks feed the order: `waiting` watches sleeps and timers, `spawning` names tasks, threads and pool
jobs, `program_ends` sees subprocesses exit, and `start_order` keeps sets of tasks in start order.
"""

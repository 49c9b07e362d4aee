"""Find the step that made a run fail: fork it many times and weigh the outcomes.

`blame` is the call. The `engine` decides what to fork next, `trials` runs the forks, and `oracles`
grades them. `parts` breaks the result down by task and agent. `report` is the result with all its
evidence, and its verdict in words; `ranking` orders its exchanges, `last_blame` finds that of a
tape, and `notebook` shows it in one. `bisect` is a shorter search for runs that always fail the
same way. `shrinking` finds the smallest run that still fails. `telemetry` reports a blame to your
own logs, traces and metrics.
"""

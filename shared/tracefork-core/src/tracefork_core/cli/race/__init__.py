"""Replay a tape in many orders to find races.

`race_runs` starts a process of `race_worker` for each order. `race_result` holds the result of all,
and `race_report` prints it.
"""

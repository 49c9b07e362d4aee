"""Replay in many orders: `race_runs`, each a `race_worker`, add up to a `race_result`.

`race_report` prints it.
"""

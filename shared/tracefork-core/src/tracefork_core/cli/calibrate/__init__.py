"""Run an agent several times, each a `calibrate_worker`, and compare.

`calibrate_result` is what came out, `calibrate_report` prints it.
"""

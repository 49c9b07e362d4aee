"""Run an agent several times, and compare the runs.

Each run is a process of `calibrate_worker`. `calibrate_result` holds the result, and
`calibrate_report` prints it.
"""

"""The contract that seams and sessions share.

`contract` has the words. `current` is the session that runs here, `lane` the line it runs on,
`running` the loop and the task, `caller` the line of the user's code, `known_sites` what a tape
calls the functions that draw. `telemetry` is no part of a run, nor what is asked about the
`machine`; `module_arrival` tells when a library is imported.
"""

"""What seams and sessions share.

`contract` is the interface between them: request, answer, failure. `current` is the session that
runs here and `lane` the line of exchanges it runs on (`running`: its event loop and task). `caller`
finds the line of the user's code, `call_sites` and `recorded_sites` the function that draws.
`machine` lists modules whose subprocesses only ask about the machine, `telemetry` knows what
frameworks report about themselves.
"""

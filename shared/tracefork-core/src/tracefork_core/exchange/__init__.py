"""What seams and sessions share.

`contract` is the interface between them: request, answer, failure. `kind` classifies a request
once: an ordinary call, a token count, a report, or telemetry. `current` is the session that runs
here, `lane` the line of exchanges it runs on. `generators` finds both for a step of a
generator, and `carry` hands them to work of an older thread. `caller` finds the line of the user's
code, `call_sites` the function that draws.
"""

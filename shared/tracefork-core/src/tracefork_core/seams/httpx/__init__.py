"""httpx and httpx2: `client` instruments, `transports` and `streams` stand in for theirs.

`family` converts requests, responses and errors of either library.
"""

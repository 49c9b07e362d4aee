"""httpx and httpx2: `client` patches them, `transports` and `streams` replace theirs.

`family` converts the requests, responses and errors of either library. `pools` closes connections
of an event loop that is gone.
"""

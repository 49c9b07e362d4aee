"""requests: `client` instruments its adapter, `body` its response bodies.

`failures` converts the exceptions of requests and urllib3.
"""

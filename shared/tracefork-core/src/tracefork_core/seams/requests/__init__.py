"""requests: `client` patches its adapter, `body` reads response bodies.

`failures` converts the exceptions of requests and urllib3.
"""

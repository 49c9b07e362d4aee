"""aiohttp: `client` patches it with a middleware.

`request`, `response` and `reader` convert what is sent and received, `failures` the exceptions.
"""

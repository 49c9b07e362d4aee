"""aiohttp: `client` instruments it with a middleware (`connector` where it has none).

`request`, `response` and `reader` convert what is sent and received, `failures` the exceptions.
"""

"""Grade a run: `oracles` by name or expression, `judge` by a model.

`noise` is how often an oracle contradicts itself. `http_library` is the client the judge uses.
"""

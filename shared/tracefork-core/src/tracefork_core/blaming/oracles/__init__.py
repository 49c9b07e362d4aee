"""Grade a run: `oracles` by name or expression, `judge` by a model.

`noise` measures how often an oracle contradicts itself.
"""

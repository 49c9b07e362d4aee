"""Runs whose truth is known exactly: what blame is held to, beside the rules of others.

A `causal_program` is an agent that is a finite table. `planting` builds one, `stories` say what
happened to it, `cases` are all of them; `exact` computes the truth, and `truth` what is right to
say of it. `world` carries probes out, `driving` runs a `blame_engine` there, `transport` counts
live calls over HTTP. `running` is a whole bench: its `score`, the `rivals` and their `standing`,
`audits`; `checks` are its rules, `results` its document. `rng` and `quantiles` are drawn and looked
up.
"""

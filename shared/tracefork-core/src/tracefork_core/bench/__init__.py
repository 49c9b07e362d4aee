"""Runs whose truth is known exactly: what blame is held to, beside the rules of others.

A `program` is an agent that is a finite table. `planting` builds one, `stories` say what happened
to it, `cases` are all of them; `exact` computes the truth, and `truth` what is right to say of it.
`world` carries probes out, `driving` runs an `engine` there, `transport` counts what is live over
HTTP. `running` is a whole bench: its `score`, the `rivals`, how they are `standing`, `audits`;
`checks` are its rules, `report` its document. `chance` and `quantiles` are drawn and looked up.
"""

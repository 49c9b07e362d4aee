"""Where the checkpoints of a framework lie: a file of threads for every day, or a run's tape.

`contract` is what an adapter asks. The file: `store`, by a `connection`; `rows` of it, values in
`bodies` that rest on one another, `removal`. The tape: `lineage` says
which followed which, `recorded` how a thread was run on.
"""

"""Where the checkpoints of a framework lie: a file of threads, or the tape of a run.

`contract` is what an adapter asks. The file: `store`, through a `connection`; its `rows`, the
values in `bodies`, and `removal` of checkpoints. The tape: `lineage` says which checkpoint followed
which.
"""

"""Hold blame to simulated runs whose truth is computed exactly, beside the rules of other tools.

A `planted_agent` is an agent that is a finite table, with faults planted in it. `scenarios` say
what happened to it and which step is to blame, `cases` lists them all. `simulation` carries probes
out on a recorded run, and `driver` runs an engine there and counts its live calls. `score`
compares what the engine says with the truth, and with `rivals`; `audits` check the budget, groups
and lost outcomes. `bench` runs all of it and applies the acceptance rules.
"""

"""Measure blame on simulated runs whose truth is computed exactly, beside the rules of other tools.

A `planted_agent` is an agent that is a finite table, with faults planted in it. `scenarios` define
what happens in each case and which step is to blame; `cases` lists them. `simulation` runs probes
on a recorded run, and `driver` runs an engine there and counts its live calls. `score` compares the
engine's verdict with the truth and with `rivals`; `audits` check the budget, groups and lost
outcomes. `bench` runs all of it and applies the acceptance rules.
"""

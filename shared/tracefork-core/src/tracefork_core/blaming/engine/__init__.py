"""Decide what to fork next and what the results mean. Runs nothing and reads no tape.

`engine` yields batches of probes (`probe`), phase by phase: `controls` (does the recorded run fail
when it is replayed?), `localise` (which step, by the `curve` of risk along the run), `certify` (is
the difference proven?), `causes` (joint, preempting and second causes), `controls` again, and
`shares`. `evidence` holds the trials so far and `intervals` the statistics; `pass_rate` judges how
often an agent passes. `verdict` puts the `result` together.
"""

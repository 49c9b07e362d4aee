"""Decide what to fork next and what the results mean. Runs nothing and reads no tape.

`engine` yields a `probe` at a time, in phases: `replay_check`, `localise` (`search`, `curve`),
`preemption`, `certify`, `peel`, `repair`, `controls`, `shares`. It keeps its `evidence` with
`counts`; `settings` are its limits, `intervals` its statistics. `result` and `verdict` are what it
comes to.
"""

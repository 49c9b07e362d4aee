"""Record randomness and the clock, and answer them from the tape at replay.

`chance` is everything one run draws: its `clock` (the process's own is `system_clock`), its
`entropy` (from `seed_streams`), and `nondet_source` for programs that want no patching.
`process_entropy` switches the patches on: `os_entropy`, `global_random`, `uuids`, `temp_names` and
`numpy_random`, with one generator per lane (`lane_generators`, `generator_states`). `owner` finds
the session that a draw belongs to, `observers` see each draw, `first_draw` delays the patches in a
child process until something is drawn. `guard` reports randomness that is not on the tape, and
`surroundings` records what the agent reads of its environment.
"""

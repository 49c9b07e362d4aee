"""Record randomness and the clock, and answer them from the tape at replay.

`chance` is everything one run draws: its `clock` (`system_clock` replaces the process's own), its
`entropy`, and `nondet_source` for programs that want no patching. `process_entropy` switches the
patches on: those of `entropy`, `global_random`, `uuids`, `native_uuids` and `numpy_random`, with
one generator per lane (`generators`). `draws` finds the session that a draw belongs to, and reports
each draw to observers; `first_draw` delays the patches in a child process until something is drawn.
`guard` reports randomness that is not on the tape, and `surroundings` records what the agent reads
of its environment.
"""

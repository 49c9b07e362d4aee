"""Chance, brought onto the tape: what the agent draws when it reads the clock.

`chance` is all of one run's. The wall clock is `clock`, taken over by `wall`. Entropy is `entropy`,
drawn from `streams`; `ambient` switches on what draws it: `os_entropy`, `uuids`, `temp_names`,
`global_random` and `numpy_random`, with generators for each lane (`lane_generators`,
`generator_states`), also where modules bound them for themselves (`swaps`, `traps`). Who draws is
told by `whose` and `sites`; `sightings` are for those who watch. `nondet` is for programs that want
nothing patched.

Lanes are named as work is started: `spawning`; what was started comes `in_order`; `waiting` shows
the agent's own sleeps, `program_ends` what waits for programs.
`surroundings` notes what is read around the agent, where `surroundings_reads` sees it. `boundary`
names what goes past the tape: `boundary_doors` are known, `boundary_calls` wraps them,
`boundary_watch` switches that on.
"""

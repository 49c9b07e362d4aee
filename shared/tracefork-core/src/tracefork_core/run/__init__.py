"""Open a session, switch seams, clock and guard on, close with a receipt.

`record`, `replay` and `fork` are the three blocks of code under a session, and `rerun` is a fork
without a fork point; `rerun_changes` says what it asked differently. `use_tape` records the first
time and replays from then on, and `only_writer` lets one process do so. `scope` is what they share,
`writing` what those share that write a tape, and the receipt of it. `fork_point` finds the exchange
that is meant, `surroundings` says what has changed since the recording. `untaped` finds the tools
that ran without being on the tape, and `captured` says what ran outside of a tape that holds
nothing. `racing` tries other orders of what overlaps. `decorated` runs each call of a function in
such a block.
"""

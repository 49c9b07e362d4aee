"""Report randomness and clock reads that the tape does not hold.

`boundary` reports the line of the agent's code, `known_sources` lists the functions that draw,
`wrapped_calls` wraps them, and `guard_switch` switches all of it on.
"""

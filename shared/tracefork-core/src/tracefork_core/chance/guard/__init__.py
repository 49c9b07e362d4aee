"""Report randomness and clock reads that the tape does not hold.

`boundary` names the line, `known_sources` are the functions that draw, `wrapped_calls` wraps them,
and `guard_switch` switches all of it on.
"""

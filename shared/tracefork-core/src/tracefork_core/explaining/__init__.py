"""Explain why two runs differ.

For one replay: `divergence` names the first difference and the nearest recorded exchanges, found by
`differences`; `hints` guesses the cause and gives advice, `provenance` tells which kind of value
differs. For two recordings of one agent (`tracefork calibrate`): `changes` lists the differences,
cut to `fragments`, `draws` lists random values and clock reads, `causes` matches the two, and
`findings` is the result.
"""

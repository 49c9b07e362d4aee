"""Explain why two runs differ.

`patterns` recognises what kind of value differs (a time, a UUID, an address) and `advice` says what
to do about each kind: two tables, for a single replay and for two recordings alike.

For one replay: `divergence` describes the first difference and the nearest recorded exchanges,
which `differences` finds. For two recordings of one agent (`tracefork calibrate`): `changes` lists
what differs, `draws` notes random values and clock reads, `causes` traces each change to a draw,
and `findings` is the result.
"""

"""Secrets: what is one, and what stands in its place on a tape.

What is one: `names` of variables, `patterns` of tokens, `masks` that somebody asked for,
`credentials` in headers and URLs. `spellings` are the forms that one value can take, `redactor`
finds them all. `masking` masks for a session, a `body` as it comes in pieces (`coding` unpacks it,
`clean` knows what was searched before), and `metadata` what a framework says of its checkpoints.
"""

"""What a run did, as evidence: its actions, their results and side effects, and whether it adds up.

`actions` reads the actions of a tape, each with its result and the `signature` of a failure.
`patch` identifies what the tools changed. `consistency` checks a tape without running anything, and
`bundle` writes it all into a folder.
"""

"""The child's side of a session.

`startup` runs first and makes this process a `joined_process`: its current session is the parent's,
a `joined_session`, which talks to the parent through `remote`, with a `connection` for each
exchange. `joined_chance` puts the clock and randomness of this process on the parent's tape; it is
loaded when the process first draws.
"""

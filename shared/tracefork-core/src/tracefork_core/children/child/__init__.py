"""The child's side of a session.

`startup` runs first, and makes the parent's session current: a `joined_session`. It talks to the
parent through `remote`, with a `connection` for each exchange. `joined_chance` puts the clock and
randomness of this process on the parent's tape; it is loaded when the process first draws.
"""

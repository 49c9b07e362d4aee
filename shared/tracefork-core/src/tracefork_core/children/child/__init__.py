"""The child's side of a session.

`startup` runs first and `arrival` makes the parent's session current: a `joined_session`, which
talks to the parent through `remote` and `remote_exchange` over a `connection`. `joined_chance`
draws from the parent's tape; `lazy_chance` puts that off until something is drawn.
"""

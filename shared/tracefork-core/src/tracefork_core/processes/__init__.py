"""Other processes of a run: what a child and the session of its parent say to one another.

An `invitation` says where to join. `words` are the calls and their answers, `frames` how they lie
on a socket. The parent's side: `listener`, `serving`. The child's: `member` is its session,
`remote` asks over a `connection`, `remote_exchange` is one exchange. Errors cross by `refusing`.
"""

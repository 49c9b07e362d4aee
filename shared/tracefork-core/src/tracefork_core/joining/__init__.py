"""Hand a session on to the processes that are started under it, and join one in them.

The parent: `hosting` lets others join, `descent` is what is handed on, `children` gives it to
Python programs by `boot`, `forks` to forked ones, `multiprocess` names the lanes of pools, and
`older_workers` says whose workers are too old to join. The child: `child` runs as it starts,
`arrival` makes the session current, `arming` switches its seams on, `joined_chance` draws from the
parent's tape, and `waking` only once something draws.
"""

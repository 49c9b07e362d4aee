"""Let child processes take part in the session of their parent.

Start reading in `messages`: what a child and its parent send to each other. `parent` holds the
parent's side, `child` the child's. `environment` passes the session on through environment
variables, `invitation` says where a child joins and on which lane, and `boot` runs first in every
Python child. `forks` handles `os.fork`, `multiprocess` the standard library's processes and pools.
"""

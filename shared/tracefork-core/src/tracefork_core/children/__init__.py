"""Let child processes take part in the session of their parent.

In the parent (`parent`): a local socket where children join, and the server behind it. In the child
(`child`): the session as seen from there. `protocol` is what they send to each other. `environment`
passes the session on through environment variables, `inheritance` decides which lane a child gets,
`boot` runs first in every Python child. `forks` handles `os.fork`, `multiprocess` the standard
library's processes and pools, `older_workers` names pool workers that started before the session,
and `instruments` lists which hooks are installed on both sides.
"""

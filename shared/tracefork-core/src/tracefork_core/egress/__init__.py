"""Connections that no seam makes: refused at replay, counted while recording.

`guard` watches with an audit hook. `target` tells what is reached and `started_program` which
program is started; `child_report` is how child processes report what they tried, `outliving` warns
of threads and tasks that go on after their session.
"""

from tracefork_core.egress.guard import Watch

__all__ = ["Watch"]

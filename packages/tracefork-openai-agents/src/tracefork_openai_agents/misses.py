"""Let a divergence through the SDK, which tells models about the errors of tools.

The SDK raises each error of a tool as a `UserError`, unless it is one of its own. So an error of
ours is raised as one of its own, too. Models need no such care: the SDK raises what is no error of
HTTP, and a session that has failed answers no second attempt.
"""

from __future__ import annotations

from agents.exceptions import AgentsException

from tracefork_core.adapters import check_session


def check() -> None:
    """Raise the first error of the session, in a class that the SDK lets pass."""
    check_session(AgentsException, run_data=None)

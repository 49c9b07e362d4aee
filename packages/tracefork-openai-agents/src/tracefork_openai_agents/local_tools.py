"""Make exchanges of the tools that act on this machine: shells, patches, custom tools, computers.

A replay never runs them. In forks they are writes: a fork runs them only if you allow it.
"""

from __future__ import annotations

from tracefork_core.adapters import Patches


def put_in(patches: Patches) -> None:
    """Make the calls of local tools exchanges of the open session."""

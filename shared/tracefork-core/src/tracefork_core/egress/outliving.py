"""Say that a thread or a task goes on when the session that it was started in has ended."""

from __future__ import annotations

import warnings

from tracefork_core.egress.target import Target
from tracefork_core.exchange.caller import caller
from tracefork_core.exchange.lane import outlived


def warn_if_outlived(wanted: Target) -> None:
    """Warn that the user's code reaches something for real, since its session has ended.

    Threads of libraries (exporters of traces and of measurements) outlive sessions as they like.
    """
    if (lane := outlived()) is None or (where := caller()) is None:
        return
    warnings.warn(
        f"tracefork: the run that {lane.name} belonged to has ended: {where} reaches {wanted} "
        "for real, and no tape has it. Wait for it inside the block.",
        RuntimeWarning,
        stacklevel=1,
    )

"""Tell a run of which nothing was captured: its replay proves nothing.

Such a tape holds no exchange, while the run started programs, opened connections that no seam made,
or loaded modules that connect in native code. An SDK that starts a command line of its own does
that. A replay would do it again, for real, and its digest would equal the tape's.
"""

from __future__ import annotations

from tracefork_core.tape import Receipt

_TOLD = 4
"""The names that a sentence lists."""
EMPTY = "nothing to prove: the tape holds no exchange"
"""The verdict on a replay of such a tape where nothing ran outside."""
REMEDY = (
    "`tracefork doctor` lists what is captured. Record the function that runs it as a tool "
    "(--tool MODULE:NAME, @tracefork.tool), and its result is on the tape."
)


def outside_words(receipt: Receipt | None) -> str | None:
    """Return what ran outside of a tape without any exchange; None for every other tape."""
    if receipt is None or receipt.exchanges:
        return None
    found = [*receipt.subprocesses, *receipt.strays, *receipt.unwatched]
    names = list(dict.fromkeys(found))
    left = len(names) - _TOLD
    listed = [*names[:_TOLD], *([f"{left} more"] if left > 0 else [])]
    return f"{', '.join(listed)} ran outside" if names else None

"""The exit codes: one set for every command. An error brings its own, as `errors` says."""

from __future__ import annotations

SAME, DIFFERENT, FAILED = 0, 1, 3
"""What a run that was held against a recording came to, where no error says it."""
INTERRUPTED = 130

EXITS = {
    0: "same",
    1: "different",
    2: "usage",
    3: "replay failed",
    4: "egress",
    5: "bad tape",
    6: "internal",
    7: "boundary",
}
"""What each of them means, in the documents of the commands and in `tracefork --help`."""

"""The exit codes, the same for every command.

An error of `errors.py` brings its own code as `exit_code`.
"""

from __future__ import annotations

SAME, DIFFERENT, FAILED = 0, 1, 3
"""The result of comparing a run with its recording, where no error carries the code."""
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
"""The word for each code, in JSON documents and in `tracefork --help`."""

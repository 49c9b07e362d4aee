"""One process per recorder: `python worker.py "plain client"`.

It reads tasks from standard input, one JSON document per line ({"module", "task", "arguments"}),
calls that function of that measurement with its recorder, and prints the result. Each recorder has
its own process, so that its patches, hooks and imports cannot slow down another.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback

from peers import PEERS
from recorders import OURS


def main() -> None:
    """Serve until standard input ends."""
    recorder = {**OURS, **PEERS}[sys.argv[1]]()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Output of a library must not look like an answer.
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            task = getattr(importlib.import_module(asked["module"]), asked["task"])
            answer = {"samples": task(recorder, **asked["arguments"])}
        except Exception:  # noqa: BLE001 any failure is reported to the bench
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

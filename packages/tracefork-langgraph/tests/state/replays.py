"""A script that replays tapes in a process of its own, five times each.

Its argument is a list of jobs in JSON: a tape, a module of this folder, and the arguments of its
function `run`. It prints what the runs gave.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

import tracefork_core as tracefork

results = []
for tape, module, arguments in json.loads(sys.argv[1]):
    run = import_module(module).run
    for _ in range(5):
        with tracefork.replay(tape):
            results.append(run(*arguments))
print(json.dumps(results))

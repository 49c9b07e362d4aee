"""Run one verifier in a process of its own, in a container for instance.

It reads a job from stdin and writes one line to stdout: the result as it lies on a tape, or the
class and the message of the exception.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from tracefork_core.exchange.contract import Failure
from tracefork_core.seams.tools.definition import Tool
from tracefork_core.seams.tools.tool import MARK
from tracefork_core.seams.tools.verifying import outcome


def main() -> None:
    """Run the job on stdin."""
    job = json.load(sys.stdin)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What the verifier prints is no answer.
    found = _function(job)
    tool: Tool = getattr(found, MARK, None) or Tool(found, None, None, ())
    asked = str(job["arguments"])
    came = outcome(tool, lambda: _called(tool, json.loads(asked)))
    if isinstance(came, Failure):
        answer: dict[str, object] = {"failure": [came.kind, came.message]}
    else:
        answer = {"body": came.decode()}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _function(job: dict[str, str]) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    module: Any = import_module(job["module"])
    return reduce(getattr, job["name"].split("."), module)


def _called(tool: Tool, arguments: dict[str, Any]) -> object:
    value = tool.function(**arguments)
    return asyncio.run(value) if inspect.iscoroutine(value) else value


if __name__ == "__main__":
    main()

"""Run one test of the suite in a new process with another hash seed.

The new process runs pytest on the same test, so that the fixtures, the settings and the warnings of
the adapter's tests hold there too. The test sees that `task` is set, and does its other half.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path

import pytest

from tracefork_core import Tape

Task = dict[str, str]
_TASK = "TRACEFORK_CONFORMANCE_TASK"
_SECONDS = 300  # A framework may take long to import while other tests run.
_AGENT = "tracefork_conformance_agent"

task: Task | None = json.loads(os.environ.pop(_TASK, "null"))
"""What this process is to do; None in the process that the user started."""


def run(request: pytest.FixtureRequest, task: Task) -> None:
    """Run the test of this request in a new process.

    Raises:
        AssertionError: it failed there; the message is what it printed.
    """
    environment = {name: value for name, value in os.environ.items() if "PYTEST_" not in name}
    environment |= {_TASK: json.dumps(task), "PYTHONHASHSEED": _other_seed()}
    # What pytest finds beside the test and in its own path, the new process finds there too.
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    test = request.node.nodeid.partition("::")[2]
    words = [f"{request.path}::{test}", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    done = subprocess.run(  # noqa: S603 - the same Python, and the same test
        [sys.executable, "-m", "pytest", *words],
        cwd=request.config.rootpath,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"in a process of its own:\n{done.stdout}"


def fork_by_command(tape: Path, place: str, agent: Callable[[], object]) -> int | None:
    """Type `tracefork fork TAPE --at PLACE` for this agent, and return where it forked."""
    from tracefork_core.cli.main import main

    module = module_from_spec(ModuleSpec(_AGENT, None))
    vars(module)["run"] = agent
    sys.modules[_AGENT] = module
    branch = tape.with_name("branch.tape")
    words = [str(tape), "--at", place, "--agent", f"{_AGENT}:run", "--allow-writes"]
    status = main(["fork", *words, "-o", str(branch)])
    assert status == 0, f"tracefork fork --at {place} ended with {status}"
    with Tape.open(branch) as opened:
        return opened.branch.at if opened.branch else None


def _other_seed() -> str:
    return "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"

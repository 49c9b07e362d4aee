"""Run first in each Python child process of a session: install the guard, and join the session.

Python finds this file first on PYTHONPATH. The child may run in an environment without tracefork,
so the package is loaded from its path on disk, and `sys.path` stays as it is. At the end this file
loads the sitecustomize that it hides.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _install(task: str) -> None:
    package = _HERE.parent.parent
    if "tracefork_core" not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            "tracefork_core", package / "__init__.py", submodule_search_locations=[str(package)]
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["tracefork_core"] = module
        spec.loader.exec_module(module)
    from tracefork_core.children.environment import install_from_environment

    watch, invitation = install_from_environment(task)
    if invitation is not None:
        from tracefork_core.children.child.startup import join

        join(invitation, watch)


def _say_unguarded(task: str) -> None:
    """Name this Python in the parent's receipt, like any program without the guard."""
    version = ".".join(str(part) for part in sys.version_info[:2])
    given = json.loads(task)
    line = {"programs": ["python%s (unguarded)" % version], "arrived": given["start"]}  # noqa: UP031 - for old Pythons
    with open(given["report"], "a") as file:  # noqa: PTH123
        file.write(json.dumps(line) + "\n")


def _hand_over() -> None:
    """Load the sitecustomize that this one hides, if any."""
    sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != _HERE]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_task = os.environ.get("TRACEFORK_EGRESS")
if _task:
    try:
        _install(_task)
    except Exception:
        _say_unguarded(_task)
        raise
    finally:
        _hand_over()
else:
    _hand_over()

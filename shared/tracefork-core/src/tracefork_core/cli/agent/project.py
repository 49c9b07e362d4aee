"""A folder as the agent: an installed adapter says what its framework would run there."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.adapters import FindProject, Project


def enter(folder: Path) -> Project:
    """Change to a project's folder, and set its import paths and environment variables.

    Raises:
        UsageError: there is no such folder, or no adapter recognizes it.
    """
    if not folder.is_dir():
        raise UsageError(f"tracefork: no folder at {folder}.")
    project = find(folder)
    paths = [str(path) for path in project.paths]
    if sys.path[: len(paths)] != paths:
        # The first entry belongs to whatever started this process, where Python set one.
        sys.path[: not sys.flags.safe_path] = paths
    os.environ.update(project.environment)
    os.chdir(project.folder)
    return project


def find(folder: Path) -> Project:
    """Return the project in a folder.

    Raises:
        UsageError: no installed adapter recognizes a project in the folder.
    """
    from importlib.metadata import entry_points

    from tracefork_core.adapters.adapter import PROJECTS

    asked = []
    for point in entry_points(group=PROJECTS):
        try:
            finder: FindProject = point.load()
        except Exception as error:  # noqa: BLE001 - a broken adapter must not hide the others
            asked.append(f"the adapter for {point.name} is broken: {error!r}")
            continue
        if project := finder(folder.absolute()):
            return project
        asked.append(f"the adapter for {point.name} does not")
    who = f" ({', '.join(asked)})" if asked else ""
    raise UsageError(
        f"tracefork: {folder} is a folder, and no adapter installed here knows what to run in "
        f"it{who}. Install the adapter of its framework (pip "
        "install tracefork-crewai for a project of crewai), or name a script, -m MODULE or "
        "--agent PKG.MOD:FN."
    )

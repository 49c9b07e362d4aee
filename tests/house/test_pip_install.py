"""What pip makes of the folders of the packages: a file of its own, that runs beside the wheels."""

from __future__ import annotations

import json
import re
import venv
from pathlib import Path

from house.repository import ASKS, PULLED, packages, run


def installed(python: Path) -> set[str]:
    """Return the names of all that pip sees in an environment."""
    listed = json.loads(run(python, "-m", "pip", "list", "--format", "json"))
    return {re.sub(r"[-_.]+", "-", entry["name"]).lower() for entry in listed}


def test_pip_installs_the_folders_and_what_they_use(tmp_path: Path) -> None:
    """`pip install` of each folder works with pip alone and pulls in what is pinned here."""
    folders = {package.name: package.folder for package in packages()}
    assert folders.keys() == PULLED.keys() | ASKS.keys()
    venv.create(tmp_path, with_pip=True)
    python = tmp_path / "bin" / "python"
    before = installed(python)
    for name, pulled in PULLED.items():
        run(python, "-m", "pip", "install", "-q", "--no-compile", folders[name])
        now, wanted = installed(python), set(pulled.split())
        found, before = now - before, now
        new, gone = sorted(found - wanted), sorted(wanted - found)
        assert (new, gone) == ([], []), f"{name} pulls in {new}, and no longer {gone}"
    run(python, "-m", "pip", "check")
    assert "Usage" in run(tmp_path / "bin" / "tracefork", "--help")

"""A folder or an archive with a `__main__` runs as in Python."""

from __future__ import annotations

import zipapp
from pathlib import Path

import pytest

from .conftest import PLAIN_AGENT, Shell

MAIN = """\
import sys
import beside
print(__name__, repr(__package__), __spec__.name, __file__, sys.argv, sys.path[0] in __file__)
"""


@pytest.fixture(params=["folder", "archive.pyz"])
def program(request: pytest.FixtureRequest, shell: Shell) -> str:
    """A program that imports a module from its own folder or archive."""
    shell.write("folder/__main__.py", MAIN)
    shell.write("folder/beside.py", PLAIN_AGENT)
    zipapp.create_archive(shell.folder / "folder", shell.folder / "archive.pyz")
    return str(request.param)


def test_a_folder_or_archive_is_recorded_and_replayed(program: str, shell: Shell) -> None:
    """It sees the same as under Python, and its stem names the tape."""
    plain = shell.python(program, "seven")
    assert plain.out.startswith("seven\n__main__ '' __main__ /")
    recorded = shell.tracefork("record", program, "--", "seven")
    assert (recorded.exit, recorded.out) == (0, plain.out)
    replayed = shell.tracefork("replay", f"{Path(program).stem}.tape")
    assert (replayed.exit, replayed.out) == (0, plain.out)


def test_a_folder_without_main_is_refused(shell: Shell) -> None:
    """It does not say which of its files to run."""
    shell.write("other/agent.py", PLAIN_AGENT)
    refused = shell.tracefork("record", "other")
    assert refused.exit == 2
    assert "is a folder, and no adapter installed here knows what to run in it" in refused.err

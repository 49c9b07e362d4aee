"""The script and the style that are committed are those of the sources."""

from __future__ import annotations

import os
import subprocess
from importlib import resources
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "shared/tracefork-core/page"
NAMES = ("page.js", "page.css", "LICENSES.txt")


def test_the_same_sources_give_the_same_page(tmp_path: Path) -> None:
    """One command builds them. If this fails: `npm run build` in that folder, and commit."""
    words = ["npm", "--prefix", str(SOURCES), "run", "--silent", "build"]
    subprocess.run(words, env={**os.environ, "OUT": str(tmp_path)}, check=True)
    built = resources.files("tracefork_core.cli.report") / "built"
    for name in NAMES:
        assert (tmp_path / name).read_bytes() == (built / name).read_bytes(), name


def test_the_script_is_small() -> None:
    """Each report carries it."""
    script = resources.files("tracefork_core.cli.report") / "built/page.js"
    assert len(script.read_bytes()) <= 130_000


def test_each_library_has_its_licence() -> None:
    """Those that are in the page, with their versions."""
    licences = (resources.files("tracefork_core.cli.report") / "built/LICENSES.txt").read_text()
    for name in ("preact", "htm", "@tanstack/virtual-core", "diff"):
        assert f"{name} " in licences
    assert licences.count("Copyright") >= 3

"""The packages of this repository, and how the house tests run commands on them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Package:
    """One distribution: its folder, and the [project] table of its pyproject.toml."""

    folder: Path
    project: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.project["name"])

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    @property
    def source(self) -> Path:
        return self.folder / "src" / self.module


@dataclass(frozen=True)
class Built:
    """The two files that a release of a package uploads."""

    wheel: Path
    sdist: Path


def packages() -> list[Package]:
    """Return every distribution of the repository, by name."""
    files = [*ROOT.glob("shared/*/pyproject.toml"), *ROOT.glob("packages/*/pyproject.toml")]
    found = [Package(path.parent, tomllib.loads(path.read_text())["project"]) for path in files]
    return sorted(found, key=lambda package: package.name)


def run(*command: str | Path) -> str:
    """Return what a command prints, or fail with its errors.

    It runs without the variables by which this environment could leak into another one.
    """
    kept = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_python(code: str, python: str | Path = sys.executable) -> str:
    """Return what `code` prints in a fresh interpreter that sees its own packages only."""
    return run(python, "-I", "-c", code)

"""Write the file of a page, never over another file unless asked, and print a summary of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from tracefork_core.cli import tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.report.document import Report
from tracefork_core.cli.report.packing import Parts
from tracefork_core.cli.report.page import pieces
from tracefork_core.errors import UnwritableError, UsageError

SUFFIX = ".html"


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was written."""

    path: Path
    report: Report

    @property
    def exchanges(self) -> int:
        """How many exchanges its runs have."""
        return sum(run.exchanges if run.only is None else 1 for run in self.report.runs)

    def fields(self) -> dict[str, object]:
        """Return what a JSON document says about it."""
        return {"report": str(self.path), "bytes": self.path.stat().st_size}

    def print(self) -> None:
        """Print its name and what it holds."""
        runs = figures.several(len(self.report.runs), "run")
        size = figures.size(self.path.stat().st_size)
        held = figures.several(self.exchanges, "exchange")
        line = f"● {tape_names.shown(self.path)} · {runs} · {held} · {size}"
        screen.stdout().print(line, soft_wrap=True)

    def print_next(self) -> None:
        """Print how to open it."""
        shown = shlex.quote(tape_names.shown(self.path))
        screen.stdout().print(
            f"  next: open {shown} in a browser", style=screen.DIM, soft_wrap=True
        )


def free(output: Path | None, stem: str, *, overwrite: bool) -> Path:
    """Return the file to write.

    Args:
        output: the file that the user named.
        stem: its name if the user named none, without the suffix.
        overwrite: whether it may exist.

    Raises:
        UsageError: it exists.
    """
    target = (output or Path(stem + SUFFIX)).absolute()
    if target.exists() and not overwrite:
        raise UsageError(
            f"tracefork: {tape_names.shown(target)} already exists. Use --overwrite to replace it, "
            "or -o to choose another name."
        )
    return target


def write(target: Path, report: Report, parts: Parts) -> Page:
    """Write a page.

    Raises:
        UnwritableError: the file cannot be written.
    """
    page = b"".join(pieces(report, parts))
    try:
        target.write_bytes(page)
    except OSError as error:
        raise UnwritableError(
            f"tracefork: cannot write {tape_names.shown(target)}: {error.strerror}. Choose another "
            "file with -o."
        ) from error
    return Page(target, report)

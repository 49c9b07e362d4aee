"""`tracefork report`: write a run as a page that anyone can open."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.errors import UnwritableError, UsageError

if TYPE_CHECKING:
    from tracefork_core.cli.report.document import Report
    from tracefork_core.cli.report.family import Shown
    from tracefork_core.cli.report.packing import Parts

SUFFIX = ".html"

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def report(
    tape: Annotated[
        str,
        typer.Argument(
            metavar="TAPE|FOLDER", help="A tape, a branch, or a folder of tapes; `last` works."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The page (default: TAPE.html)."),
    ] = None,
    no_content: Annotated[
        bool,
        typer.Option("--no-content", help="Leave all texts of the run out; keep its structure."),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if it exists.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Write a run as one HTML page: what failed, what was said, what it cost, how branches differ.

    The page needs no network and no other file. It shows the branches of a tape and the result of
    its last blame. Secrets that are masked on the tape are masked on the page.
    """
    from tracefork_core.cli.report import family

    is_folder = Path(tape).is_dir()
    path = Path(tape).absolute() if is_folder else tape_names.find(tape)
    shown = family.of_folder(path) if is_folder else family.of_tape(path)
    target = (output or Path(f"{path.name if is_folder else path.stem}{SUFFIX}")).absolute()
    if target.exists() and not overwrite:
        raise UsageError(
            f"tracefork: {tape_names.shown(target)} already exists. Use --overwrite to replace it, "
            "or -o to choose another name."
        )
    import msgspec

    from tracefork_core.cli.report.packing import Parts
    from tracefork_core.cli.report.page import pieces

    parts = Parts()
    document, unreadable = _document(shown, parts, content=not no_content)
    if is_folder:
        document = msgspec.structs.replace(document, title=path.name)
    _write(target, b"".join(pieces(document, parts)))
    _tell(target, document, unreadable, as_json=as_json)
    return 0


def _document(
    shown: Shown, parts: Parts, *, content: bool
) -> tuple[Report, list[tuple[Path, str]]]:
    """Return the data of the page, and the tapes that cannot be read.

    Raises:
        TapeError: the first tape cannot be read.
    """
    from tracefork_core.cli.report.document import Report
    from tracefork_core.cli.report.run_data import run_of
    from tracefork_core.tape import Tape

    runs = []
    for path in shown.paths:
        with Tape.open(path) as tape:
            place = shown.place_of_parent(path)
            runs.append(run_of(tape, parts, content=content, parent=place))
    return Report(title=runs[0].name, content=content, runs=runs), shown.unreadable


def _write(target: Path, page: bytes) -> None:
    try:
        target.write_bytes(page)
    except OSError as error:
        raise UnwritableError(
            f"tracefork: cannot write {tape_names.shown(target)}: {error.strerror}. Choose another "
            "file with -o."
        ) from error


def _tell(
    target: Path, document: Report, unreadable: list[tuple[Path, str]], *, as_json: bool
) -> None:
    size, exchanges = target.stat().st_size, sum(run.exchanges for run in document.runs)
    if as_json:
        screen.say_json(
            {
                "command": "report",
                "exit": 0,
                "report": str(target),
                "bytes": size,
                "runs": [run.name for run in document.runs],
                "exchanges": exchanges,
                "content": document.content,
                "unreadable": [str(path) for path, _ in unreadable],
            }
        )
        return
    console, shown = screen.stdout(), tape_names.shown(target)
    runs = figures.several(len(document.runs), "run")
    counts = f"{runs} · {figures.several(exchanges, 'exchange')} · {figures.size(size)}"
    console.print(f"● {shown} · {counts}", soft_wrap=True)
    for path, reason in unreadable:
        screen.note(console, f"! left out: {tape_names.shown(path)}: {reason}", screen.WARN)
    finding = document.runs[0].finding
    console.print(f"  {finding.line}", soft_wrap=True)
    console.print(
        f"  next: open {shlex.quote(shown)} in a browser", style=screen.DIM, soft_wrap=True
    )

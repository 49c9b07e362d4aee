"""`tracefork report`: write a run as a page that anyone can open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import screen

if TYPE_CHECKING:
    from tracefork_core.cli.report.page_file import Page

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
    from tracefork_core.cli.report import assembly, family, page_file
    from tracefork_core.cli.report.packing import Parts

    is_folder = Path(tape).is_dir()
    path = Path(tape).absolute() if is_folder else tape_names.find(tape)
    shown = family.of_folder(path) if is_folder else family.of_tape(path)
    stem = path.name if is_folder else path.stem
    target = page_file.free(output, stem, overwrite=overwrite)
    parts = Parts()
    document = assembly.of_family(shown, parts, content=not no_content)
    if is_folder:
        import msgspec

        document = msgspec.structs.replace(document, title=path.name)
    _tell(page_file.write(target, document, parts), shown.unreadable, as_json=as_json)
    return 0


def _tell(page: Page, unreadable: list[tuple[Path, str]], *, as_json: bool) -> None:
    document = page.report
    if as_json:
        screen.say_json(
            {
                "command": "report",
                "exit": 0,
                **page.fields(),
                "runs": [run.name for run in document.runs],
                "exchanges": page.exchanges,
                "content": document.content,
                "unreadable": [str(path) for path, _ in unreadable],
            }
        )
        return
    console = screen.stdout()
    page.print()
    for path, reason in unreadable:
        screen.note(console, f"! left out: {tape_names.shown(path)}: {reason}", screen.WARN)
    console.print(f"  {document.runs[0].finding.line}", soft_wrap=True)
    page.print_next()

"""`tracefork diff`: compare two runs, or a branch with the run that it comes from."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.exits import DIFFERENT, SAME
from tracefork_core.errors import UsageError
from tracefork_core.tape import Tape

if TYPE_CHECKING:
    from tracefork_core.cli.report.page_file import Page
    from tracefork_core.comparing.diff import Comparison

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@options.grouped
def diff(
    tape: options.TapeName,
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="[OTHER]",
            help="The tape to compare it with. Without it, TAPE is a branch.",
        ),
    ] = None,
    at: Annotated[
        int | None,
        typer.Option("--at", metavar="N", help="Show what differs at exchange N, in full."),
    ] = None,
    stat: Annotated[
        bool, typer.Option("--stat", help="Show only how many exchanges differ, and the totals.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Compare headers, clock, ids and the order asked, too."),
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")
    ] = False,
    *,
    page: options.HtmlOptions,
    as_json: options.AsJson = False,
) -> int:
    """Compare two runs, exchange by exchange; one tape alone is a branch, compared with its parent.

    Clock, ids and the order in which lanes took turns are no differences. A question that differs
    only by an earlier difference counts as the same. Exits with 0 if nothing differs, or with 1.
    """
    if markdown and as_json:
        raise UsageError("tracefork: --markdown and --json exclude each other.")
    from tracefork_core.comparing.diff import diff as compare
    from tracefork_core.comparing.diff import parent_of

    path = tape_names.find(tape)
    there = tape_names.find(other) if other is not None else None
    if page.html and (markdown or stat or at is not None):
        raise UsageError(
            "tracefork: --html writes the whole comparison. It excludes --markdown, --stat and "
            "--at."
        )
    target = page.target(f"{(there or path).stem}-diff")
    with Tape.open(path) as one, Tape.open(there or path) as opened:
        first = one if there else parent_of(one)
        second = opened if there else one
        found = compare(first, second, strict=strict)
        if at is not None and not any(at in (one.first, one.second) for one in found.findings):
            typed = shlex.join([word for word in (tape, other) if word])
            raise UsageError(
                f"tracefork: nothing differs at exchange {at}. `tracefork diff {typed}` lists what "
                "differs."
            )
        status = DIFFERENT if found else SAME
        names = tape_names.shown(Path(first.path)), tape_names.shown(Path(second.path))
        if as_json:
            from tracefork_core.cli.display.diff_report import totals

            document: dict[str, object] = {"first": names[0], "second": names[1], "strict": strict}
            if target is not None:
                document |= _page(target, first, second, found).fields()
            runs = {"runs": [totals(first), totals(second)]}
            screen.say_json(
                {"command": "diff", "exit": status, **document, **found.document(), **runs}
            )
        elif target is not None:
            written = _page(target, first, second, found)
            written.print()
            count = figures.several(len(found.findings), "difference")
            line = f"  {names[0]} ↔ {names[1]} · {count if found else 'no difference'}"
            screen.stdout().print(line, soft_wrap=True)
            written.print_next()
        elif markdown:
            from tracefork_core.cli.display.diff_markdown import print_markdown

            print_markdown(found, (first, second), names)
        else:
            from tracefork_core.cli.display.diff_report import print_diff

            with screen.paged() as console:
                print_diff(console, found, (first, second), names, at=at, stat=stat)
    return status


def _page(target: Path, first: Tape, second: Tape, found: Comparison) -> Page:
    from tracefork_core.cli.report import assembly, page_file
    from tracefork_core.cli.report.packing import Parts

    parts = Parts()
    return page_file.write(target, assembly.of_two(first, second, found, parts), parts)

"""`tracefork show`: the timeline of a tape, one exchange, its checkpoints, or a body."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import screen
from tracefork_core.cli.display.text import readable
from tracefork_core.cli.exits import DIFFERENT, SAME
from tracefork_core.errors import UsageError
from tracefork_core.tape import Exchange, Tape

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
@options.grouped
def show(
    tape: options.TapeName,
    number: Annotated[
        int | None, typer.Argument(metavar="[N]", help="Show exchange N of the timeline in full.")
    ] = None,
    other_number: Annotated[
        int | None,
        typer.Argument(metavar="[M]", help="With --against: the exchange of the other tape."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="TAPE|M",
            help="Compare what the model was told: with exchange M of this tape, or of another.",
        ),
    ] = None,
    text: Annotated[
        bool,
        typer.Option("--text", help="Show the run as text without clock and ids, as for git."),
    ] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write the response body of exchange N to stdout.")
    ] = False,
    request_raw: Annotated[
        bool, typer.Option("--request-raw", help="Write the request body of exchange N to stdout.")
    ] = False,
    transcript: Annotated[
        bool, typer.Option("--transcript", help="Show the conversation, each message once.")
    ] = False,
    headers: Annotated[
        bool, typer.Option("--headers", help="Show the headers of exchange N, too.")
    ] = False,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="List the checkpoints that a framework saves.")
    ] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint", metavar="ID", help="Show one checkpoint, by the end of its id."
        ),
    ] = None,
    *,
    page: options.HtmlOptions,
    as_json: options.AsJson = False,
) -> int:
    """Show the timeline of a tape, its conversation, or one exchange in full.

    On a terminal it goes through $PAGER. There, even --raw spells out control characters, so that a
    tape cannot drive the terminal. A file or a pipe gets the exact bytes.
    """
    path = tape_names.find(tape)
    if checkpoints or checkpoint is not None:
        if number is not None or raw or request_raw:
            raise UsageError(
                "tracefork: --checkpoints and --checkpoint do not go with the number of an "
                "exchange, --raw or --request-raw."
            )
        _checkpoints(path, checkpoint, as_json=as_json)
        return 0
    if transcript and (number is not None or raw or request_raw):
        raise UsageError(
            "tracefork: --transcript shows the whole run. It does not go with the number of an "
            "exchange, --raw or --request-raw."
        )
    if text and (number is not None or raw or request_raw or transcript or as_json):
        raise UsageError("tracefork: --text shows the whole run, and goes with no other option.")
    if against is None and other_number is not None:
        raise UsageError(
            f"tracefork: show takes one exchange. To compare two: tracefork show {tape} {number} "
            f"--against {other_number}"
        )
    if page.html and (number is None or raw or request_raw or against is not None):
        raise UsageError(
            "tracefork: --html needs the number of one exchange, and excludes --raw, --request-raw "
            f"and --against. The whole run: tracefork report {shlex.quote(tape)}"
        )
    target = page.target(f"{path.stem}-{number}")
    with Tape.open(path) as opened:
        if against is not None:
            return _contexts(opened, path, number, against, other_number, as_json=as_json)
        if text:
            from tracefork_core.comparing.text_form import text_form

            for line in text_form(opened):
                screen.say_text(line)
        elif transcript:
            _transcript(opened, path, as_json=as_json)
        elif raw or request_raw:
            if number is None or as_json or raw == request_raw:
                raise UsageError(
                    "tracefork: --raw and --request-raw need the number of one exchange, exclude "
                    "each other, and do not go with --json."
                )
            exchange = _pick(opened, path, number)
            _write(exchange.response_body if raw else exchange.request_body)
        elif number is None:
            _timeline(opened, path, as_json=as_json)
        elif target is not None:
            _html(opened, _pick(opened, path, number), target, as_json=as_json)
        else:
            _page(opened, _pick(opened, path, number), path, headers=headers, as_json=as_json)
    return 0


def _checkpoints(path: Path, wanted: str | None, *, as_json: bool) -> None:
    from tracefork_core.cli.display import checkpoint_tables as tables

    store, asked = tables.of(path)
    checkpoints = list(store.search())[::-1]
    if wanted is not None:
        checkpoint = tables.chosen(checkpoints, wanted)
        if as_json:
            values = tables.state(checkpoint, store.body)
            document = {**tables.document([checkpoint], asked)[0], "values": values}
            screen.say_json({"command": "show", "exit": 0, "checkpoint": document})
        else:
            tables.print_state(screen.stdout(), checkpoint, store.body)
    elif as_json:
        document = {"checkpoints": tables.document(checkpoints, asked)}
        screen.say_json({"command": "show", "exit": 0, "tape": str(path), **document})
    else:
        tables.print_checkpoints(screen.stdout(), checkpoints, asked, tape_names.shown(path))


def _timeline(tape: Tape, path: Path, *, as_json: bool) -> None:
    from tracefork_core.cli.display import timeline

    if as_json:
        screen.say_json({"command": "show", "exit": 0, **timeline.document(tape)})
    else:
        with screen.paged() as console:
            timeline.print_timeline(console, tape, tape_names.shown(path))


def _transcript(tape: Tape, path: Path, *, as_json: bool) -> None:
    from tracefork_core.cli.display import transcript

    if as_json:
        screen.say_json({"command": "show", "exit": 0, **transcript.document(tape)})
    else:
        with screen.paged() as console:
            transcript.print_transcript(console, tape, tape_names.shown(path))


def _page(tape: Tape, exchange: Exchange, path: Path, *, headers: bool, as_json: bool) -> None:
    from tracefork_core.cli.display import page

    if as_json:
        screen.say_json({"command": "show", "exit": 0, **page.document(tape, exchange)})
    else:
        with screen.paged() as console:
            page.print_page(console, tape, exchange, tape_names.shown(path), with_headers=headers)


def _html(tape: Tape, exchange: Exchange, target: Path, *, as_json: bool) -> None:
    from tracefork_core.cli.report import assembly, page_file
    from tracefork_core.cli.report.packing import Parts

    parts = Parts()
    page = page_file.write(target, assembly.of_exchange(tape, exchange.n, parts), parts)
    if as_json:
        screen.say_json({"command": "show", "exit": 0, **page.fields(), "exchange": exchange.n})
        return
    page.print()
    page.print_next()


def _contexts(
    tape: Tape,
    path: Path,
    number: int | None,
    against: str,
    other_number: int | None,
    *,
    as_json: bool,
) -> int:
    """Compare what a model was told by two exchanges; return whether that differs."""
    from tracefork_core.comparing.context import compare_contexts

    if number is None:
        raise UsageError(
            "tracefork: --against compares one exchange with another. Name it: tracefork show TAPE "
            "N --against M"
        )
    is_here = other_number is None and against.isdecimal()
    there = path if is_here else tape_names.find(against)
    with Tape.open(there) as opened:
        chosen = int(against) if is_here else number if other_number is None else other_number
        first, second = _pick(tape, path, number), _pick(opened, there, chosen)
        found = compare_contexts((tape, first), (opened, second))
        names = f"{tape_names.shown(path)} #{number}", f"{tape_names.shown(there)} #{chosen}"
    status = DIFFERENT if found.told else SAME
    if as_json:
        document = {"first": names[0], "second": names[1], **found.document()}
        screen.say_json({"command": "show", "exit": status, **document})
        return status
    from tracefork_core.cli.display import context_report

    with screen.paged() as console:
        context_report.print_contexts(console, found, names)
    return status


def _pick(tape: Tape, path: Path, number: int) -> Exchange:
    exchanges = tape.exchanges
    if 0 <= number < len(exchanges):
        return exchanges[number]
    held = f"exchanges 0 to {len(exchanges) - 1}" if exchanges else "no exchanges"
    shown = tape_names.shown(path)
    raise UsageError(
        f"tracefork: there is no exchange {number} on {shown}, which holds {held}. To see them: "
        f"`tracefork show {shown}`"
    )


def _write(body: bytes) -> None:
    if sys.stdout.isatty():
        screen.stdout().print(readable(body, lines=True), soft_wrap=True)
        return
    sys.stdout.buffer.write(body)
    sys.stdout.flush()

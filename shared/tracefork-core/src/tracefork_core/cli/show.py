"""`tracefork show`: the timeline of a tape, one exchange of it, or the bytes of a body."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tracefork_core.cli import options, screen, tapes
from tracefork_core.cli.text import readable
from tracefork_core.errors import UsageError
from tracefork_core.tape import Exchange, Tape

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def show(
    tape: options.TapeName,
    number: Annotated[
        int | None, typer.Argument(metavar="[N]", help="Show exchange N, as numbered there.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Write the response body of N to stdout, as recorded.")
    ] = False,
    request_raw: Annotated[
        bool, typer.Option("--request-raw", help="Write the request body of N to stdout.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Show the timeline of a tape, or one exchange of it.

    On a terminal even --raw spells control characters as escapes: what a tape holds must not drive
    a terminal. Into a file or a pipe the bytes go as they are.
    """
    path = tapes.find(tape)
    with Tape.open(path) as opened:
        if raw or request_raw:
            if number is None or as_json or raw == request_raw:
                raise UsageError(
                    "tracefork: --raw and --request-raw each take one N and no --json."
                )
            exchange = _pick(opened, path, number)
            _write(exchange.response_body if raw else exchange.request_body)
        elif number is None:
            _timeline(opened, path, as_json=as_json)
        else:
            _page(opened, _pick(opened, path, number), path, as_json=as_json)
    return 0


def _timeline(tape: Tape, path: Path, *, as_json: bool) -> None:
    from tracefork_core.cli import timeline

    if as_json:
        screen.say_json({"command": "show", "exit": 0, **timeline.document(tape)})
    else:
        timeline.print_timeline(screen.stdout(), tape, tapes.shown(path))


def _page(tape: Tape, exchange: Exchange, path: Path, *, as_json: bool) -> None:
    from tracefork_core.cli import page

    if as_json:
        screen.say_json({"command": "show", "exit": 0, **page.document(tape, exchange)})
    else:
        page.print_page(screen.stdout(), tape, exchange, tapes.shown(path))


def _pick(tape: Tape, path: Path, number: int) -> Exchange:
    exchanges = tape.exchanges
    if 0 <= number < len(exchanges):
        return exchanges[number]
    held = f"0 to {len(exchanges) - 1}" if exchanges else "none"
    raise UsageError(f"tracefork: no exchange {number} on {tapes.shown(path)}; it holds {held}.")


def _write(body: bytes) -> None:
    if sys.stdout.isatty():
        screen.stdout().print(readable(body, lines=True), soft_wrap=True)
        return
    sys.stdout.buffer.write(body)
    sys.stdout.flush()

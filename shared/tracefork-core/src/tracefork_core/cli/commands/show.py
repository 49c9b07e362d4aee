"""`tracefork show`: the timeline of a tape, one exchange of it, its checkpoints, or a body."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import screen
from tracefork_core.cli.display.text import readable
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
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="List the states that a framework saved.")
    ] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="ID", help="Show one of them, by the end of its id."),
    ] = None,
    as_json: options.AsJson = False,
) -> int:
    """Show the timeline of a tape, one exchange of it, or the states that a framework saved.

    On a terminal even --raw spells control characters as escapes: what a tape holds must not drive
    a terminal. Into a file or a pipe the bytes go as they are.
    """
    path = tape_names.find(tape)
    if checkpoints or checkpoint is not None:
        if number is not None or raw or request_raw:
            raise UsageError("tracefork: --checkpoints and --checkpoint take no N.")
        _checkpoints(path, checkpoint, as_json=as_json)
        return 0
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


def _checkpoints(path: Path, wanted: str | None, *, as_json: bool) -> None:
    from tracefork_core.cli.display import checkpoint_tables as saved

    store, asked = saved.of(path)
    found = list(store.search())[::-1]
    if wanted is not None:
        one = saved.chosen(found, wanted)
        if as_json:
            document = {**saved.document([one], asked)[0], "values": saved.state(one, store.body)}
            screen.say_json({"command": "show", "exit": 0, "checkpoint": document})
        else:
            saved.print_state(screen.stdout(), one, store.body)
    elif as_json:
        document = {"checkpoints": saved.document(found, asked)}
        screen.say_json({"command": "show", "exit": 0, "tape": str(path), **document})
    else:
        saved.print_checkpoints(screen.stdout(), found, asked, tape_names.shown(path))


def _timeline(tape: Tape, path: Path, *, as_json: bool) -> None:
    from tracefork_core.cli.display import timeline

    if as_json:
        screen.say_json({"command": "show", "exit": 0, **timeline.document(tape)})
    else:
        timeline.print_timeline(screen.stdout(), tape, tape_names.shown(path))


def _page(tape: Tape, exchange: Exchange, path: Path, *, as_json: bool) -> None:
    from tracefork_core.cli.display import page

    if as_json:
        screen.say_json({"command": "show", "exit": 0, **page.document(tape, exchange)})
    else:
        page.print_page(screen.stdout(), tape, exchange, tape_names.shown(path))


def _pick(tape: Tape, path: Path, number: int) -> Exchange:
    exchanges = tape.exchanges
    if 0 <= number < len(exchanges):
        return exchanges[number]
    held = f"0 to {len(exchanges) - 1}" if exchanges else "none"
    shown = tape_names.shown(path)
    raise UsageError(
        f"tracefork: no exchange {number} on {shown}; it holds {held}: tracefork show {shown}"
    )


def _write(body: bytes) -> None:
    if sys.stdout.isatty():
        screen.stdout().print(readable(body, lines=True), soft_wrap=True)
        return
    sys.stdout.buffer.write(body)
    sys.stdout.flush()

"""`tracefork view`: look at runs in a browser, while they are recorded too."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import screen

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def view(
    where: Annotated[
        str,
        typer.Argument(
            metavar="[FOLDER|TAPE]", help="A folder of tapes, or a tape (default: this folder)."
        ),
    ] = ".",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port (0: a free one).")
    ] = 0,
    *,
    allow_run: Annotated[
        bool,
        typer.Option(
            "--allow-run", help="Let the page start fork, try, rerun and blame, each confirmed."
        ),
    ] = False,
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the address in a browser.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Look at runs in a browser, while they are recorded too.

    The server answers on 127.0.0.1 alone, for the address with the token that it prints, and reads
    only. Ctrl-C ends it.
    """
    from tracefork_core.cli.view.serving import serve

    tape = None if Path(where).is_dir() else tape_names.find(where)
    folder = tape.parent if tape else Path(where).absolute()

    def told(address: str, port: int) -> None:
        if as_json:
            screen.say_json(
                {
                    "command": "view",
                    "exit": 0,
                    "folder": str(folder),
                    "address": address,
                    "port": port,
                    "allow_run": allow_run,
                }
            )
        else:
            _tell(folder, address, port, allow_run=allow_run)
        if open_browser:
            typer.launch(address)

    with suppress(KeyboardInterrupt):  # This is how one says that one is done.
        serve(folder, tape.name if tape else None, port=port, allow_run=allow_run, told=told)
    return 0


def _tell(folder: Path, address: str, port: int, *, allow_run: bool) -> None:
    console = screen.stdout()
    may = "the page may run agents" if allow_run else "read-only"
    console.print(f"● {tape_names.shown(folder)} · {may}", soft_wrap=True)
    console.print(f"  {address}", soft_wrap=True)
    tunnel = f"ssh -L {port}:127.0.0.1:{port} HOST"
    console.print(
        f"  Ctrl-C ends it. From another machine: {tunnel}, then the same address.",
        style=screen.DIM,
        soft_wrap=True,
    )

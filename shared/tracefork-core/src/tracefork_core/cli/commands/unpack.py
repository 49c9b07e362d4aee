"""`tracefork unpack`: check a tape that you received, and copy it to a folder."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.errors import UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def unpack(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The tape that you received.")],
    folder: Annotated[
        Path,
        typer.Option(
            "--into", metavar="DIR", help="Folder to copy it to (default: the current one)."
        ),
    ] = Path(),
    as_json: options.AsJson = False,
) -> int:
    """Check a tape that you received, and copy it to a folder.

    Every event and every body is read and hashed first; a damaged tape is refused. The copy is a
    new file with the content of the tape and nothing else from the received file.
    """
    from tracefork_core.tape import Tape
    from tracefork_core.tape.creation import drafted
    from tracefork_core.tape.integrity import check_undamaged
    from tracefork_core.tape.rewrite import rewrite

    if not folder.is_dir():
        raise UsageError(f"tracefork: there is no folder {folder} to unpack to. Create it first.")
    result = check_undamaged(file)
    target = folder / f"{file.stem}{tape_names.SUFFIX}"
    if target.exists():
        raise UsageError(
            f"tracefork: {target} already exists. Use --into DIR to unpack to another folder."
        )
    with Tape.open(file) as opened:
        if not opened.opens:
            with drafted(target) as draft:
                draft.touch(0o600)
                shutil.copyfile(file, draft)
        else:
            rewrite(opened, target)
    _report(target, result.exchanges, result.digest, as_json=as_json)
    return 0


def _report(target: Path, exchanges: int, digest: str | None, *, as_json: bool) -> None:
    if as_json:
        screen.say_json(
            {
                "command": "unpack",
                "exit": 0,
                "tape": str(target.absolute()),
                "exchanges": exchanges,
                "digest": digest,
            }
        )
        return
    console, shown = screen.stdout(), tape_names.shown(target)
    count = figures.several(exchanges, "exchange")
    console.print(f"✓ unpacked {shown} · {count}, undamaged", soft_wrap=True)
    console.print(f"  digest {digest or figures.UNKNOWN}", style=screen.DIM, soft_wrap=True)
    console.print(f"  next: tracefork show {shlex.quote(shown)}", style=screen.DIM, soft_wrap=True)

"""`tracefork sign`: sign a tape with your own key."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import screen
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.tape.signature import Signature

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def sign(
    tape: options.TapeName,
    key: Annotated[
        Path,
        typer.Option(
            "--key", metavar="KEYFILE", help="Your Ed25519 private key, from ssh-keygen or in PEM."
        ),
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing signature.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Sign a tape with your own key.

    The signature covers the digest of the run and the file, and is written beside the tape, as
    TAPE.sig. `tracefork verify --signed-by` checks it. Only complete tapes can be signed.
    """
    from tracefork_core.tape import Tape, signature

    path = tape_names.find(tape)
    with Tape.open(path) as opened:
        if not opened.complete:
            raise UsageError(
                f"tracefork: {path} is incomplete: its recording was cut off, or is still running. "
                "Only complete tapes can be signed."
            )
        digest = opened.digest
    signed = signature.sign(path, digest, key, overwrite=overwrite)
    target = path.with_name(path.name + signature.SUFFIX)
    public = Path(f"{key}.pub")
    following = [str(public) if public.is_file() else "PUBKEY", tape_names.shown(path)]
    command = f"tracefork verify --signed-by {shlex.join(following)}"
    if as_json:
        screen.say_json(_document(path, target, signed, command))
    else:
        _print(path, target, signed, command)
    return 0


def _document(path: Path, target: Path, signed: Signature, following: str) -> dict[str, object]:
    from tracefork_core.tape.signature import fingerprint

    return {
        "command": "sign",
        "exit": 0,
        "tape": str(path),
        "signature": str(target),
        "digest": signed.statement.digest,
        "file_sha256": signed.statement.file,
        "key": signed.key,
        "fingerprint": fingerprint(signed.key),
        "next": following,
    }


def _print(path: Path, target: Path, signed: Signature, following: str) -> None:
    from rich.text import Text

    from tracefork_core.tape.signature import fingerprint

    console = screen.stdout()
    console.print(Text("✓ ", screen.GOOD).append(f"signed {tape_names.shown(path)}", "default"))
    facts = {
        "digest": signed.statement.digest,
        "file sha256": signed.statement.file,
        "key": fingerprint(signed.key),
        "public key": signed.key,
        "signature": tape_names.shown(target),
        "next": following,
    }
    for name, value in facts.items():
        line = Text(f"  {name:<15}", screen.DIM).append(printable(value), "default")
        console.print(line, soft_wrap=True)

"""Check the signature of a tape for `verify --signed-by`, and say what it covers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracefork_core.cli import tape_names
from tracefork_core.cli.display import screen
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import DivergenceError

if TYPE_CHECKING:
    from tracefork_core.tape.signature import Verdict


def check_signature(path: Path, key: Path, *, as_json: bool) -> int:
    """Print whether a public key signed a tape: 0 for this very file, 1 for its run in another one.

    Raises:
        UsageError: there is no signature, or the key cannot be used.
        TapeError: the signature is of another key or another run, or is none.
    """
    from tracefork_core.tape import Tape, signature

    with Tape.open(path) as tape:
        verdict = signature.verify(path, tape.digest, key)
    code = 0 if verdict.file else DivergenceError.exit_code
    if as_json:
        screen.say_json(
            {
                "command": "verify",
                "exit": code,
                "tape": str(path),
                "signed_by": verdict.key,
                "fingerprint": signature.fingerprint(verdict.key),
                "digest": verdict.statement.digest,
                "same_run": True,
                "same_file": verdict.file,
            }
        )
    else:
        _print(path, verdict)
    return code


def _print(path: Path, verdict: Verdict) -> None:
    from rich.text import Text

    from tracefork_core.tape.signature import fingerprint

    console = screen.stdout()
    mark = Text("✓ ", screen.GOOD) if verdict.file else Text("✗ ", screen.BAD)
    what = "the run and this file of it are signed" if verdict.file else "another file is signed"
    console.print(mark.append(f"{tape_names.shown(path)} · {what}", "default"))
    facts = {"key": fingerprint(verdict.key), "digest": verdict.statement.digest}
    for name, value in facts.items():
        line = Text(f"  {name:<15}", screen.DIM).append(printable(value), "default")
        console.print(line, soft_wrap=True)
    if not verdict.file:
        console.print(
            "  The run is the one that was signed: every request and answer. The file is not: "
            "times, steps, draws and chunk boundaries may be anybody's. If you wrote it anew "
            "yourself, sign it again.",
            soft_wrap=True,
        )

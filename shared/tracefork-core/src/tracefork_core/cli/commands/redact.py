"""`tracefork redact`: copy a tape without the secrets on it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.secrets import secret_words
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import TapeError, UsageError
from tracefork_core.tape.schema import BESIDE

if TYPE_CHECKING:
    from tracefork_core.masking.masks import Masks
    from tracefork_core.redaction.redaction import Redaction
    from tracefork_core.tape import Tape

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def redact(
    tape: options.TapeName,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The tape to write (default: TAPE-redacted.tape).",
        ),
    ] = None,
    mask: options.Mask = None,
    as_json: options.AsJson = False,
) -> int:
    """Copy a tape without the secrets on it.

    The secrets are those that `tracefork scan` finds. They are masked as a recording in mode safe
    masks them, so the new tape replays wherever they have other values. The old tape is not
    changed: check the new one, then delete the old one.
    """
    from tracefork_core.masking.masks import Masks
    from tracefork_core.redaction.redaction import Redaction
    from tracefork_core.tape import Tape
    from tracefork_core.tape.integrity import check_undamaged
    from tracefork_core.tape.rewrite import rewrite

    path = tape_names.find(tape)
    check_undamaged(path)
    target = output or tape_names.free_name(f"{path.stem}-redacted")
    with Tape.open(path) as opened:
        masks = Masks.read(mask or []).named_on(opened.environment)
        _check(opened, masks)
        change = Redaction(masks)
        mode = "safe" if opened.mode == "raw" else opened.mode
        digest = rewrite(opened, target, change, mode=mode)
        result = _result(opened, target, digest, change, masks)
    if as_json:
        screen.say_json(result.document())
    else:
        _print(result)
    return 0


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of a redaction; `before` and `after` are digests.

    Masked secrets are `variables` by name, `tokens` by their form, or `patterns` from --mask.
    """

    old: Path
    new: Path
    parent: str | None
    exchanges: int
    changed: int
    before: str
    after: str
    secrets: dict[str, int]
    variables: list[str]
    tokens: list[str]
    patterns: list[str]
    not_unpacked: list[str]

    def document(self) -> dict[str, object]:
        """Return the result as JSON-able values."""
        return {
            "command": "redact",
            "exit": 0,
            "tape": str(self.old),
            "redacted": str(self.new.absolute()),
            "exchanges": self.exchanges,
            "changed": self.changed,
            "secrets": self.secrets,
            "digest_before": self.before,
            "digest": self.after,
            "replays_with_other": self.variables,
            "known_by_look": self.tokens,
            "patterns_to_give": self.patterns,
            "not_unpacked": self.not_unpacked,
            "next": self.following,
        }

    @property
    def following(self) -> str | None:
        """The command that deletes the old tape and its side files, if it held secrets."""
        if not any(self.secrets.values()):
            return None
        beside = (self.old.with_name(self.old.name + suffix) for suffix in BESIDE)
        files = [self.old, *(file for file in beside if file.exists())]
        return " ".join(["rm", *(shlex.quote(tape_names.shown(file)) for file in files)])


def _check(tape: Tape, masks: Masks) -> None:
    """Refuse a tape that cannot be masked as its recording would have masked it.

    Raises:
        UsageError: the tape was recorded with patterns that were not given.
        TapeError: the tape has no description of its recording.
    """
    from tracefork_core.masking.masks import patterns_on

    environment = tape.environment
    if environment is None:
        raise TapeError(
            f"tracefork: {tape.path} has no description of its recording, so it cannot be redacted."
        )
    wanted = patterns_on(environment)
    if wanted > len(masks.patterns):
        raise UsageError(
            f"tracefork: {tape.path} was recorded with {wanted} patterns to mask, and "
            f"{len(masks.patterns)} were given. The tape stores only their number: give the same "
            "patterns first, in the same order (--mask re:…)."
        )


def _result(tape: Tape, target: Path, digest: str, change: Redaction, masks: Masks) -> _Result:
    from tracefork_core.masking.names import secrets_of

    secrets = change.secrets
    known = {name for name, _ in secrets_of(os.environ)}.union(masks.names)
    patterns = [f"PATTERN_{number}" for number in range(1, len(masks.patterns) + 1)]
    return _Result(
        old=tape.path,
        new=target,
        parent=tape.origin.name if tape.origin else None,
        exchanges=len(tape.exchanges),
        changed=len({place.exchange for place in change.found} - {None}),
        before=tape.digest,
        after=digest,
        secrets=secrets,
        variables=[name for name in secrets if name in known and secrets[name]],
        tokens=[name for name in secrets if name not in known.union(patterns)],
        patterns=patterns,
        not_unpacked=sorted(change.odd),
    )


def _print(result: _Result) -> None:
    from rich.text import Text

    console, shown = screen.stdout(), tape_names.shown(result.new)
    changed = f"{result.changed} of {figures.several(result.exchanges, 'exchange')} changed"
    head = Text("● redacted ", screen.GOOD).append(shown, "bold").append(" · ", "default")
    console.print(head.append(changed, "default"), soft_wrap=True)
    if result.secrets:
        console.print(f"  secrets masked: {secret_words(result.secrets)}", soft_wrap=True)
    else:
        console.print("  no secrets found")
    same = result.before == result.after
    change = "unchanged" if same else f"was {result.before}"
    console.print(f"  digest {result.after} ({change})", style=screen.DIM, soft_wrap=True)
    for line in _replays(result):
        console.print(f"  {printable(line)}", soft_wrap=True)
    for line in _warnings(result):
        console.print(f"  ! {printable(line)}", style=screen.WARN, soft_wrap=True)
    if result.following:
        console.print(
            Text("  next: ", screen.DIM).append(result.following, "default"), soft_wrap=True
        )


def _replays(result: _Result) -> Iterator[str]:
    """Yield the conditions for replaying the new tape."""
    if result.variables:
        yield f"replays with any value of {', '.join(result.variables)}"
    if result.tokens:
        names = ", ".join(result.tokens)
        yield (
            f"recognised by form only: {names}. The tape replays if no variable holds such a "
            "token; if one does, set that variable here and redact the old tape again"
        )
    if result.patterns:
        count = figures.several(len(result.patterns), "pattern")
        yield f"replays with the same {count}: give --mask re:… again, in the same order"


def _warnings(result: _Result) -> Iterator[str]:
    for coding in result.not_unpacked:
        yield (
            f"bodies in the content coding {coding} could not be unpacked within the limits: only "
            "their packed bytes were searched"
        )
    if result.parent:
        yield (
            f"the old tape is a branch of {result.parent}, which may hold the same secrets: "
            "redact that too"
        )

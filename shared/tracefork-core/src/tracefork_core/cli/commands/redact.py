"""`tracefork redact`: a tape that was made before, without the secrets on it."""

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
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="The tape to write.")
    ] = None,
    mask: options.Mask = None,
    as_json: options.AsJson = False,
) -> int:
    """Write a tape anew, without the secrets that `tracefork scan` finds on it.

    They are masked as a recording in mode safe would have masked them, so the new tape replays
    where they have other values. The old tape stays as it is: delete it once you have looked.
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
    """What came of it. `before` and `after` are digests.

    Of what was masked, `tokens` are known by their look alone, `patterns` by what the user gave.
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
        """Return it as JSON-able values."""
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
        """The command that deletes the old tape with what lies beside it, if it held secrets."""
        if not any(self.secrets.values()):
            return None
        beside = (self.old.with_name(self.old.name + suffix) for suffix in BESIDE)
        files = [self.old, *(file for file in beside if file.exists())]
        return " ".join(["rm", *(shlex.quote(tape_names.shown(file)) for file in files)])


def _check(tape: Tape, masks: Masks) -> None:
    """Refuse what would come out other than it is said to.

    Raises:
        UsageError: the tape was recorded with patterns that are not given.
        TapeError: it does not say how it was recorded.
    """
    from tracefork_core.masking.masks import patterns_on

    environment = tape.environment
    if environment is None:
        raise TapeError(f"tracefork: {tape.path} does not say how it was recorded.")
    wanted = patterns_on(environment)
    if wanted > len(masks.patterns):
        raise UsageError(
            f"tracefork: {tape.path} was recorded with {wanted} pattern(s) to mask, and "
            f"{len(masks.patterns)} are given. Give the same ones first, in the same order "
            "(--mask re:…): a tape holds their number alone."
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
        console.print("  no secrets were found")
    same = result.before == result.after
    told = "is the same" if same else f"was {result.before}"
    console.print(f"  digest {result.after} ({told})", style=screen.DIM, soft_wrap=True)
    for line in _replays(result):
        console.print(f"  {printable(line)}", soft_wrap=True)
    for line in _warnings(result):
        console.print(f"  ! {printable(line)}", style=screen.WARN, soft_wrap=True)
    if result.following:
        console.print(
            Text("  next: ", screen.DIM).append(result.following, "default"), soft_wrap=True
        )


def _replays(result: _Result) -> Iterator[str]:
    """Yield what it takes to replay the new tape."""
    if result.variables:
        yield f"replays with any value of {', '.join(result.variables)}"
    if result.tokens:
        names = ", ".join(result.tokens)
        yield (
            f"known by look alone: {names}. Replays where no variable holds such a token; "
            "where one does, set that variable here and redact the old tape again"
        )
    if result.patterns:
        count = figures.several(len(result.patterns), "pattern")
        yield f"replays with the same {count}: give --mask re:… again, in this order"


def _warnings(result: _Result) -> Iterator[str]:
    for coding in result.not_unpacked:
        yield f"bodies packed with {coding} could not be unpacked: they were searched as bytes"
    if result.parent:
        yield f"the old tape is a branch of {result.parent}, which may hold the same: redact it too"

"""`tracefork scan`: find secrets on existing tapes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import TapeError, TraceforkError, UsageError

if TYPE_CHECKING:
    from rich.status import Status

    from tracefork_core.masking.masks import Masks
    from tracefork_core.redaction.redaction import Place

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def scan(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Tapes, or folders that are searched for tapes."),
    ],
    mask: options.Mask = None,
    as_json: options.AsJson = False,
) -> int:
    """Find secrets on existing tapes.

    Secrets are what a recording would mask: values of secret environment variables, tokens of a
    known form, and what --mask names. Each is reported by name and location, never by value.
    """
    from tracefork_core.masking.masks import Masks

    masks = Masks.read(mask or [])
    todo, results = _tapes(paths), []
    with _progress() as status:
        # Parents are scanned too: a branch stores what it shares with them there.
        for number, path in enumerate(todo, 1):
            if status is not None:
                status.update(f"scanning {number} of {len(todo)}: {printable(path.name)}")
            result = _scan(path, masks)
            results.append(result)
            if result.parent is not None and result.parent not in todo:
                todo.append(result.parent)
    unread = any(result.problem for result in results)
    code = TapeError.exit_code if unread else int(any(result.found for result in results))
    if as_json:
        documents = [_document(result) for result in results]
        screen.say_json({"command": "scan", "exit": code, "tapes": documents})
    else:
        _print(results)
    return code


@dataclass(slots=True)
class _Result:
    """The secrets on one tape; `shown` is its path, masked."""

    path: Path
    shown: str
    parent: Path | None = None
    found: list[tuple[Place, int]] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    problem: str | None = None


def _tapes(paths: Sequence[str]) -> list[Path]:
    """Return the tapes that paths name, each once.

    Raises:
        UsageError: there is no such tape, or a folder has none in it.
    """
    tapes: list[Path] = []
    for name in paths:
        folder = Path(name)
        if not folder.is_dir():
            tapes.append(tape_names.find(name))
            continue
        inside = sorted(path for path in folder.absolute().rglob("*") if tape_names.is_tape(path))
        if not inside:
            raise UsageError(f"tracefork: there are no tapes in {folder} to scan.")
        tapes += inside
    return list(dict.fromkeys(tapes))


def _scan(path: Path, masks: Masks) -> _Result:
    from tracefork_core.redaction.redaction import Redaction
    from tracefork_core.redaction.redaction import scan as scanned
    from tracefork_core.tape import Tape

    search = Redaction(masks)
    result = _Result(path, search.text(tape_names.shown(path)))
    try:
        with Tape.open(path) as tape:
            if tape.origin is not None:
                result.parent = path.with_name(tape.origin.name)
            search = Redaction(masks.named_on(tape.environment))
            scanned(tape, masks, search)
    except TraceforkError as error:
        result.problem = search.text(str(error).removeprefix("tracefork: "))
    except Exception as error:  # noqa: BLE001 - one hostile file must not hide the others
        result.problem = search.text(f"{type(error).__name__}: {error}")
    result.odd = [search.text(coding) for coding in sorted(search.odd)]
    result.found = sorted(search.found.items(), key=_order)
    return result


def _order(found: tuple[Place, int]) -> tuple[bool, int]:
    number = found[0].exchange
    return number is None, number or 0


@contextmanager
def _progress() -> Iterator[Status | None]:
    """Show the progress, on a terminal only."""
    console = screen.stderr()
    if not console.is_terminal:
        yield None
        return
    with console.status("scanning") as status:
        yield status


def _document(result: _Result) -> dict[str, object]:
    return {
        "tape": result.shown,
        "found": [
            {
                "exchange": place.exchange,
                "kind": place.kind,
                "where": place.where,
                "secret": place.secret,
                "count": count,
            }
            for place, count in result.found
        ],
        "not_unpacked": result.odd,
        "problem": result.problem,
    }


def _print(results: Sequence[_Result]) -> None:
    console, notes = screen.stdout(), screen.stderr()
    for result in results:
        shown = printable(result.shown)
        for place, count in result.found:
            line = f"{shown} · {_event(place)} · {place.where} · {place.secret} \u00d7{count}"
            console.print(printable(line), soft_wrap=True)
        for coding in result.odd:
            note = (
                f"! {shown}: bodies in the content coding {coding} cannot be unpacked within the "
                "limits: only their packed bytes were searched"
            )
            notes.print(printable(note), style=screen.WARN, soft_wrap=True)
        if result.problem:
            problem = f"✗ {shown}: {result.problem}"
            notes.print(printable(problem), style=screen.BAD, soft_wrap=True)
    hit = [result for result in results if result.found]
    if not hit and (read := sum(not result.problem for result in results)):
        console.print(f"no secrets on {figures.several(read, 'tape')}")
    if not hit:
        return
    console.print(f"secrets on {len(hit)} of {figures.several(len(results), 'tape')}")
    for result in hit:
        command = f"tracefork redact {shlex.quote(result.shown)}"
        console.print(f"  next: {printable(command)}", style=screen.DIM, soft_wrap=True)


def _event(place: Place) -> str:
    if place.exchange is None:
        return place.kind
    number = f"exchange {place.exchange}"
    return number if place.kind == "exchange" else f"{number} ({place.kind})"

"""`tracefork ls`: list the tapes in a folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import TraceforkError, UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def ls(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The folder (default: the current one).")
    ] = Path(),
    as_json: options.AsJson = False,
) -> int:
    """List the tapes in a folder.

    The newest tape comes first. Damaged tapes and files that are not tapes are listed with the
    reason. The tape of a service says how its request failed, and what it was marked with.
    """
    if not folder.is_dir():
        raise UsageError(
            f"tracefork: there is no folder {folder.absolute()}.{tape_names.is_file(folder)}"
        )
    entries = [_read(path) for path in tape_names.inside(folder)]
    entries.sort(key=lambda entry: entry.recorded or 0, reverse=True)
    if as_json:
        tapes = [asdict(entry) for entry in entries]
        screen.say_json(
            {"command": "ls", "exit": 0, "folder": str(folder.absolute()), "tapes": tapes}
        )
    else:
        _print(folder, entries)
    return 0


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of the list.

    `recorded` is in nanoseconds since the epoch; `problem` is why the file cannot be read. Of a
    service's request, `served` is its name, `outcome` how it ended, and `mark` its label.
    `stop` says where the fork of a branch was stopped.
    """

    name: str
    state: str
    bytes: int
    recorded: int | None = None
    exchanges: int | None = None
    models: tuple[str, ...] = ()
    cost_usd: str | None = None
    digest: str | None = None
    mode: str | None = None
    served: str | None = None
    outcome: str | None = None
    mark: str | None = None
    stop: str | None = None
    problem: str | None = None


def _read(path: Path) -> _Entry:
    from tracefork_core.cli.display.account import dollars, glance
    from tracefork_core.tape import Tape
    from tracefork_core.tape.marks import label_of
    from tracefork_core.tape.schema import holds_threads

    files = (path.with_name(path.name + suffix) for suffix in ("", "-wal", "-flight"))
    size = sum(file.stat().st_size for file in files if file.is_file())
    state = "threads" if holds_threads(path) else "not a tape"
    try:
        with Tape.open(path) as tape:
            if not tape.opens:
                held = tape.structure.exchanges if tape.structure else None
                return _Entry(path.name, "sealed", size, exchanges=held, mode=tape.mode)
            state = "damaged"
            account = glance(tape)
            environment, served = tape.environment, tape.served
            return _Entry(
                path.name,
                "complete" if tape.complete else "incomplete",
                size,
                environment.started if environment else None,
                account.exchanges,
                account.models,
                dollars(account.cost),
                tape.digest,
                tape.mode,
                served.name if served else None,
                served.outcome if served else None,
                label_of(path),
                tape.stop.words if tape.stop else None,
            )
    except TraceforkError as error:
        problem = str(error).removeprefix("tracefork: ")
    except Exception as error:  # noqa: BLE001 - one hostile file must not hide the others
        problem = f"{type(error).__name__}: {error}"
    return _Entry(path.name, state, size, problem=problem)


def _print(folder: Path, entries: list[_Entry]) -> None:
    console = screen.stdout()
    if not entries:
        console.print(f"no tapes in {folder.absolute()}", soft_wrap=True)
        return
    priced = any(entry.cost_usd for entry in entries)
    table = screen.grid(
        "~tape", "recorded", ">exch.", "model", ">size", *([">cost"] if priced else []), "state"
    )
    for entry in entries:
        table.add_row(*_row(entry, priced=priced))
    console.print(table)
    # On lines of their own: the names of such tapes take most of a terminal's width.
    for entry in entries:
        if ended := _ended(entry):
            console.print(f"  {printable(entry.name)}: {ended}", soft_wrap=True)
    for entry in entries:
        if entry.problem:
            line = f"! {printable(entry.name)}: {printable(entry.problem)}"
            console.print(line, style=screen.WARN, soft_wrap=True)
    if any(entry.state == "complete" for entry in entries):
        console.print("✓ complete, with the start of the digest", style=screen.DIM)


def _row(entry: _Entry, *, priced: bool) -> list[str]:
    from decimal import Decimal

    models = entry.models[0] if entry.models else figures.UNKNOWN
    if len(entry.models) > 1:
        models += f" +{len(entry.models) - 1}"
    return [
        printable(entry.name),
        figures.moment(entry.recorded),
        figures.UNKNOWN if entry.exchanges is None else str(entry.exchanges),
        models,
        figures.size(entry.bytes),
        *([figures.money(Decimal(entry.cost_usd) if entry.cost_usd else None)] if priced else []),
        _state(entry),
    ]


def _state(entry: _Entry) -> str:
    complete = entry.state == "complete" and entry.digest
    state = f"✓ {entry.digest[:6]}" if complete and entry.digest else entry.state
    # Safe is the default mode; any other is worth a word.
    if entry.mode not in (None, "safe", entry.state):
        state += f" {entry.mode}"
    return state


def _ended(entry: _Entry) -> str:
    """Return how a service's request failed, a tape's mark, and where a fork was stopped."""
    words = [] if entry.outcome in (None, "ok") else [str(entry.outcome)]
    words += [entry.stop] if entry.stop else []
    return printable(" · ".join([*words, f"marked {entry.mark}"] if entry.mark else words))

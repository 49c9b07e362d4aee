"""`tracefork import`: turn recordings and traces of other tools into tapes."""  # noqa: N999

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.adapters import Imported, Importer
    from tracefork_core.interop.importing.folder import Result
    from tracefork_core.interop.importing.foreign_run import ForeignRun
    from tracefork_core.tape import Receipt

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(name="import")
def bring(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE|FOLDER]", help="A recording or trace of another tool, or many of them."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="NEW.tape", help="The tape to write; of a folder, a folder."
        ),
    ] = None,
    sqlite: Annotated[
        Path | None,
        typer.Option(
            "--langgraph-sqlite",
            metavar="OLD.db",
            help="A file of LangGraph's SqliteSaver; it is only read.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> int:
    """Turn a recording or a trace of another tool into a tape.

    The tape says how much of the run the file held. If that is all of it, the tape replays.
    With --langgraph-sqlite, the result is a file of threads that a `TapeSaver` reads.
    """
    if (source is None) == (sqlite is None):
        raise UsageError(
            "tracefork: name a file or a folder to import, or a database with --langgraph-sqlite."
        )
    if output is None:
        raise UsageError("tracefork: name what to write with -o: -o new.tape")
    if sqlite is not None:
        return _bring_threads(sqlite, output, as_json=as_json)
    assert source is not None
    if source.is_dir():
        return _bring_folder(source, output, as_json=as_json)
    return _bring_file(source, tape_names.to_write(output), as_json=as_json)


def _bring_file(source: Path, output: Path, *, as_json: bool) -> int:
    from tracefork_core.interop.importing.recognise import import_file
    from tracefork_core.tape.creation import check_place

    check_place(output)
    receipt, run = import_file(source, output)
    if as_json:
        screen.say_json(_document(output, receipt, run))
    else:
        _print(output, receipt, run)
    return 0


def _document(output: Path, receipt: Receipt, run: ForeignRun) -> dict[str, object]:
    return {
        "command": "import",
        "exit": 0,
        "tape": str(output),
        "digest": receipt.digest,
        "exchanges": receipt.exchanges,
        "format": run.format,
        "grade": run.grade,
        "missing": run.missing,
    }


def _print(output: Path, receipt: Receipt, run: ForeignRun) -> None:
    from tracefork_core.tape.imported import GRADES

    console, shown = screen.stdout(), tape_names.shown(output)
    counted = figures.several(receipt.exchanges, "exchange")
    console.print(f"✓ imported {shown} · {run.format} · {counted}", soft_wrap=True)
    console.print(f"  {GRADES[run.grade]}", soft_wrap=True)
    for words in run.missing:
        console.print(f"  {printable(words)}", style=screen.DIM, soft_wrap=True)
    console.print(f"  next: tracefork show {shown}", style=screen.DIM, soft_wrap=True)


def _bring_folder(source: Path, output: Path, *, as_json: bool) -> int:
    from tracefork_core.interop.importing.folder import SUFFIXES, import_folder

    if output.is_file():
        raise UsageError(f"tracefork: {output} is a file. Name a folder for the tapes with -o.")
    source, output = source.absolute(), output.absolute()
    results = list(import_folder(source, output))
    if not results:
        raise UsageError(
            f"tracefork: {source} has no file to import. It would end in {', '.join(SUFFIXES)}."
        )
    code = next((result.exit for result in results if result.exit), 0)
    if as_json:
        files = [asdict(result) for result in results]
        screen.say_json({"command": "import", "exit": code, "folder": str(output), "files": files})
    else:
        _print_folder(results)
    return code


def _print_folder(results: list[Result]) -> None:
    console = screen.stdout()
    counts = Counter((result.format or "", result.grade_words) for result in results)
    table = screen.grid("format", "grade", ">files")
    for (format_name, grade), count in counts.items():
        table.add_row(format_name, grade, f"{count:,} of {len(results):,}")
    console.print(table)
    for result in results:
        if result.problem:
            line = f"! {printable(result.source)}: {printable(result.problem)}"
            console.print(line, style=screen.WARN, soft_wrap=True)
    if first := next((result.tape for result in results if result.tape), None):
        shown = tape_names.shown(Path(first))
        console.print(f"  next: tracefork show {shown}", style=screen.DIM, soft_wrap=True)


def _bring_threads(sqlite: Path, output: Path, *, as_json: bool) -> int:
    bring_in = _importer("langgraph-sqlite", "tracefork-langgraph")
    if output.exists():
        raise UsageError(f"tracefork: {output} already exists. Use -o to choose another name.")
    if not output.parent.is_dir():
        raise UsageError(
            f"tracefork: there is no folder {output.parent} to write to. Create it first."
        )
    _report(output, _imported(bring_in, sqlite, output), as_json=as_json)
    return 0


def _imported(bring_in: Importer, source: Path, output: Path) -> Imported:
    from tracefork_core.checkpoints.store import CheckpointFile
    from tracefork_core.tape.creation import drafted

    with drafted(output) as draft:
        store = CheckpointFile(draft)
        try:
            imported = bring_in(source, store)
        finally:
            store.close()
        if not imported.threads:
            raise UsageError(f"tracefork: {source} holds no threads. No file was written.")
        return imported


def _importer(name: str, distribution: str) -> Importer:
    from tracefork_core.adapters.adapter import IMPORTERS

    for point in entry_points(group=IMPORTERS, name=name):
        importer: Importer = point.load()
        return importer
    raise UsageError(
        f"tracefork: no importer for {name} is installed. Type: pip install {distribution}"
    )


def _report(output: Path, imported: Imported, *, as_json: bool) -> None:
    counts = {
        "threads": imported.threads,
        "checkpoints": imported.checkpoints,
        "writes": imported.writes,
        "bytes": output.stat().st_size,
    }
    if as_json:
        path = str(output.absolute())
        screen.say_json({"command": "import", "exit": 0, "file": path, **counts})
        return
    console, shown = screen.stdout(), tape_names.shown(output)
    facts = [
        figures.several(imported.threads, "thread"),
        figures.several(imported.checkpoints, "checkpoint"),
        figures.several(imported.writes, "pending write"),
        figures.size(counts["bytes"]),
    ]
    console.print(f"✓ imported {shown} · {' · '.join(facts)}", soft_wrap=True)
    console.print(f"  next: TapeSaver({shown!r})", style=screen.DIM, soft_wrap=True)

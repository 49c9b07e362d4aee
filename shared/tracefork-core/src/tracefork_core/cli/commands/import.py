"""`tracefork import`: convert the threads of another checkpointer into one file."""  # noqa: N999

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.adapters import Imported, Importer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(name="import")
def bring(
    sqlite: Annotated[
        Path,
        typer.Option(
            "--langgraph-sqlite",
            metavar="OLD.db",
            help="A file of LangGraph's SqliteSaver; it is only read.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="NEW.tape", help="The file to write."),
    ],
    as_json: options.AsJson = False,
) -> int:
    """Convert the threads of another checkpointer into one file.

    A `TapeSaver` reads the file. Checkpoints keep their ids, metadata, namespaces and pending
    writes.
    """
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

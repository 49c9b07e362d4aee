"""`tracefork import`: bring the threads of another checkpointer into a file of threads."""  # noqa: N999

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
            help="A file of LangGraph's SqliteSaver; it is read, and not changed.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="NEW.tape", help="The file of threads to make."),
    ],
    as_json: options.AsJson = False,
) -> int:
    """Bring the threads of another checkpointer into a file of threads, for a TapeSaver.

    Checkpoints keep their ids, metadata, namespaces and pending writes.
    """
    bring_in = _importer("langgraph-sqlite", "tracefork-langgraph")
    if output.exists():
        raise UsageError(
            f"tracefork: {output} exists and nothing is overwritten unasked. Name another with -o."
        )
    if not output.parent.is_dir():
        raise UsageError(f"tracefork: no folder {output.parent} to import to. Make it first.")
    _say(output, _imported(bring_in, sqlite, output), as_json=as_json)
    return 0


def _imported(bring_in: Importer, source: Path, output: Path) -> Imported:
    from tracefork_core.checkpoints.store import CheckpointFile
    from tracefork_core.tape.creation import drafted

    with drafted(output) as draft:
        store = CheckpointFile(draft)
        try:
            found = bring_in(source, store)
        finally:
            store.close()
        if not found.threads:
            raise UsageError(f"tracefork: {source} holds no threads; nothing was written.")
        return found


def _importer(name: str, distribution: str) -> Importer:
    from tracefork_core.adapters import IMPORTERS

    for point in entry_points(group=IMPORTERS, name=name):
        importer: Importer = point.load()
        return importer
    raise UsageError(
        f"tracefork: nothing installed here reads that. `pip install {distribution}` does."
    )


def _say(output: Path, found: Imported, *, as_json: bool) -> None:
    counts = {
        "threads": found.threads,
        "checkpoints": found.checkpoints,
        "writes": found.writes,
        "bytes": output.stat().st_size,
    }
    if as_json:
        path = str(output.absolute())
        screen.say_json({"command": "import", "exit": 0, "file": path, **counts})
        return
    console, shown = screen.stdout(), tape_names.shown(output)
    said = [
        figures.several(found.threads, "thread"),
        figures.several(found.checkpoints, "checkpoint"),
        figures.several(found.writes, "pending write"),
        figures.size(counts["bytes"]),
    ]
    console.print(f"✓ imported {shown} · {' · '.join(said)}", soft_wrap=True)
    console.print(f"  next: TapeSaver({shown!r})", style=screen.DIM, soft_wrap=True)

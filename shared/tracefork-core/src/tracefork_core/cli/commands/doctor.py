"""`tracefork doctor`: check which installed libraries tracefork captures."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict
from textwrap import wrap
from typing import TYPE_CHECKING

import typer

from tracefork_core.cli import options
from tracefork_core.cli.agent import command_store
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.tape.environment import hash_seed
from tracefork_core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tracefork_core.cli.installed import FoundAdapter, Library

_SEEDED = " · sets of strings have the same order in every run"
_RANDOM = """ · sets of strings have another order in every run
             `tracefork record` and `replay` fix the seed for their agents; for
             record() in your own process, set PYTHONHASHSEED=0 before it starts"""

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def doctor(as_json: options.AsJson = False) -> int:
    """Check which installed libraries tracefork captures.

    Lists the HTTP libraries and model SDKs, the adapters and whether they fit their framework, and
    the libraries that could bypass the guard.
    """
    from tracefork_core.cli import installed

    here = _here()
    transports, sdks = installed.transports(), installed.sdks()
    adapters, blind = installed.adapters(), installed.blind_spots()
    if as_json:
        document: dict[str, object] = {"command": "doctor", "exit": 0, **here}
        document["transports"] = [asdict(library) for library in transports]
        document["sdks"] = [asdict(library) for library in sdks]
        document["adapters"] = [asdict(adapter) for adapter in adapters]
        document["blind_spots"] = [asdict(library) for library in blind]
        screen.say_json(document)
        return 0
    console = screen.stdout()
    _print_here(console, here)
    _print_libraries(console, "HTTP libraries", transports)
    _print_libraries(console, "model SDKs", sdks)
    _print_adapters(console, adapters)
    _print_libraries(console, "can bypass the guard", blind)
    return 0


def _here() -> dict[str, object]:
    return {
        "tracefork": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "hash_seed": hash_seed() or "random",
        "store": str(command_store.home()),
    }


def _print_here(console: Console, here: dict[str, object]) -> None:
    from rich.text import Text

    for name, value in here.items():
        words = str(value)
        if name == "hash_seed":
            words += _SEEDED if words != "random" else _RANDOM
        line = Text(f"{name.replace('_', ' '):<13}", screen.DIM)
        console.print(line.append(printable(words, lines=True), "default"), soft_wrap=True)


def _print_libraries(console: Console, title: str, libraries: Sequence[Library]) -> None:
    console.print(f"\n{title}", style=screen.STRONG)
    if not libraries:
        console.print("  none installed")
        return
    width = max(13, *(len(library.name) for library in libraries))
    for library in libraries:
        head = f"  {library.name:<{width}} {printable(library.version):<8} "
        words = "✓ captured" if library.seen == "seam" else library.seen
        indent = " " * len(head)
        for line in wrap(
            head + words, console.width, subsequent_indent=indent, break_on_hyphens=False
        ):
            console.print(line)


def _print_adapters(console: Console, adapters: Sequence[FoundAdapter]) -> None:
    from tracefork_core.cli.installed import ADAPTERS

    console.print("\nadapters", style=screen.STRONG)
    if not adapters:
        names = ", ".join(sorted(ADAPTERS))
        console.print(f"  none installed: pip install tracefork-… ({names})")
    for adapter in adapters:
        mark = "✗" if adapter.problem else "?" if adapter.supported is None else "✓"
        console.print(printable(f"  {mark} {_words(adapter)}"), soft_wrap=True)
        if adapter.remedy:
            console.print(printable(f"      {adapter.remedy}"), soft_wrap=True)
            continue
        for seam in adapter.seams:
            for line in wrap(f"    {printable(seam)}", console.width, subsequent_indent=" " * 6):
                console.print(line)


def _words(adapter: FoundAdapter) -> str:
    """Return an adapter in a line, or why it does not work."""
    if adapter.version is None:
        return f"{adapter.name}: {adapter.problem}"
    state = adapter.problem or f"{adapter.framework} {adapter.framework_version}"
    return (
        f"{adapter.distribution} {adapter.version} · {state} "
        f"(supports {adapter.range or figures.UNKNOWN})"
    )

"""`tracefork tree`: show a run and its branches, with changes, outcomes and cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.account import dollars, known_cost, live_cost
from tracefork_core.cli.display.text import printable, shortened
from tracefork_core.errors import TraceforkError
from tracefork_core.tape import Tape

if TYPE_CHECKING:
    from decimal import Decimal

    from rich.text import Text
    from rich.tree import Tree

    from tracefork_core.tape.event import Stop

_DEEPEST = 64
_SHOWN = 60
_LEAST = 12
_INDENT = 4

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def tree(tape: options.TapeName, as_json: options.AsJson = False) -> int:
    """Show a run and its branches, with changes, outcomes and cost.

    For a branch, this shows the whole tree that it belongs to.
    """
    path = tape_names.find(tape)
    root = tree_of(path)
    if as_json:
        screen.say_json({"command": "tree", "exit": 0, "root": root.document()})
    else:
        console = screen.stdout()
        console.print(drawn(root, path.name, console.width))
    return 0


def tree_of(path: Path) -> Branching:
    """Return the run that a tape comes from, with all its branches.

    Raises:
        TapeError: the tape cannot be read.
    """
    runs = _linked(path.parent)
    root = runs.get(path.name) or _read(path, strict=True)
    assert root is not None
    for _ in range(_DEEPEST):
        if root.parent is None or root.parent not in runs:
            break
        root = runs[root.parent]
    return root


def trees_in(folder: Path) -> list[Branching]:
    """Return the runs of a folder that are no branch of another, each with its branches."""
    runs = _linked(folder)
    return [run for run in runs.values() if run.parent not in runs]


def _linked(folder: Path) -> dict[str, Branching]:
    runs = {run.name: run for file in tape_names.inside(folder) if (run := _read(file))}
    for run in runs.values():
        if run.parent in runs:
            runs[run.parent].branches.append(run)
    return runs


@dataclass(slots=True)
class Branching:
    """One tape; `change` is what a fork changed, `outcome` is None if the run was cut off.

    `stop` is the request that its fork was stopped before, if it was.
    """

    name: str
    parent: str | None
    at: int
    change: str
    outcome: str | None
    stop: Stop | None
    exchanges: int
    live: int
    cost: Decimal | None
    digest: str
    branches: list[Branching] = field(default_factory=list)

    def document(self) -> dict[str, object]:
        """Return the run and its branches as JSON-able values."""
        return {
            "tape": self.name,
            "parent": self.parent,
            "at": self.at if self.parent else None,
            "change": self.change or None,
            "outcome": self.outcome,
            "stop": self.stop.words if self.stop else None,
            "exchanges": self.exchanges,
            "live": self.live,
            "cost_usd": dollars(self.cost),
            "digest": self.digest,
            "branches": [branch.document() for branch in self.branches],
        }


def _read(path: Path, *, strict: bool = False) -> Branching | None:
    """Return what is shown of a tape; None for a file that cannot be read, unless `strict`."""
    try:
        with Tape.open(path) as tape:
            return _run(tape)
    except TraceforkError:
        if strict:
            raise
        return None


def _run(tape: Tape) -> Branching:
    at = tape.origin.at if tape.origin else 0
    own = tape.exchanges[at:]
    return Branching(
        tape.path.name,
        tape.origin.name if tape.origin else None,
        at,
        change_words(tape),
        tape.receipt.outcome if tape.receipt else None,
        tape.stop,
        len(tape.exchanges),
        sum(not exchange.aside.answered for exchange in own),
        live_cost(tape) if tape.origin else known_cost(tape),
        tape.digest,
    )


def change_words(tape: Tape) -> str:
    """Return the changes of a branch, like "replace 3: text 'No refund'; keep 5"."""
    branch = tape.branch
    if branch is None:
        return ""
    parts = []
    for change in branch.changes:
        detail = ", ".join(f"{name} {value!r}" for name, value in change.detail.items())
        text = f"{change.kind} {change.n}" + (f": {detail}" if detail else "")
        parts.append(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")
    if branch.is_rerun:
        return "run again"
    if branch.tail.get("onwards"):
        parts.append("and from there on")
    return printable("; ".join(parts)) or f"asked again from {branch.at}"


def drawn(root: Branching, chosen: str, width: int) -> Tree:
    """Return a run and its branches as a tree of lines, the chosen one in bold."""
    from rich.tree import Tree

    drawn = Tree(_line(root, chosen, width), guide_style=screen.DIM)
    waiting = [(root, drawn, width)]
    while waiting:
        run, node, room = waiting.pop()
        room -= _INDENT
        branches = sorted(run.branches, key=lambda branch: (branch.at, branch.name))
        waiting += [(one, node.add(_line(one, chosen, room)), room) for one in branches]
    return drawn


def _line(run: Branching, chosen: str, room: int) -> Text:
    """Return a run in one line; the change is shortened if there is little room."""
    from rich.text import Text

    name, outcome = printable(run.name), "cut off" if run.outcome is None else run.outcome
    if run.stop:
        outcome = "refused a write" if run.stop.is_write else "stopped"
    facts = [figures.several(run.exchanges, "exchange")]
    facts += [f"{run.live} live"] if run.parent else []
    is_free = run.parent is not None and not run.live
    facts += [] if run.cost is None or is_free else [figures.money(run.cost)]
    if run.parent:
        others = f"  at {run.at} ·  · {' · '.join(facts)} · {outcome}"
        left = room - len(name) - len(others)
        facts[:0] = [f"at {run.at}", shortened(run.change, max(left, _LEAST))]
    line = Text(name, screen.STRONG if run.name == chosen else "default")
    line.append(f"  {' · '.join(facts)} · ", screen.DIM)
    return line.append(printable(outcome), screen.GOOD if outcome == "ok" else screen.BAD)

"""The check of a folder, for people: one line per tape, then what failed in full."""

from __future__ import annotations

import shlex

from rich.console import Console
from rich.text import Text

from tracefork_core.cli import tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.card import print_card
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.gate.verdict import Checked, Gate, Verdict

MARKS = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.UNDECIDED: "?"}
_STYLES = {
    Verdict.PASS: screen.GOOD,
    Verdict.FAIL: screen.BAD,
    Verdict.UNDECIDED: screen.WARN,
}
_CLOSED = {
    "kernel": "the kernel kept the network closed",
    "python": "the network was closed for Python",
}


def print_gate(console: Console, gate: Gate) -> None:
    """Print the check of a folder."""
    for one in gate.checks:
        mark = Text(f"{MARKS[one.verdict]} ", _STYLES[one.verdict])
        console.print(
            mark.append(f"{printable(one.name)} · {words(one)}", "default"), soft_wrap=True
        )
    for name in gate.orphans:
        note = f"! {printable(name)} is in no entry of the manifest, so it is not checked"
        screen.note(console, note, screen.WARN)
    for one in gate.of(Verdict.FAIL):
        _print_failure(console, one)
    head = Text(f"{MARKS[gate.verdict]} ", _STYLES[gate.verdict]).append(summary(gate), "default")
    console.print(head, soft_wrap=True)
    if following := next_command(gate):
        console.print(f"  next: {following}", style=screen.DIM, soft_wrap=True)


def words(one: Checked) -> str:
    """Return a check in words: what was replayed, or why not."""
    if one.verdict == Verdict.UNDECIDED:
        return printable(f"undecided: {one.reason} (missing: {one.missing})")
    if one.verdict == Verdict.FAIL:
        return printable(one.reason)
    exact = "bit-exact" if one.exact else "alike"
    facts = [f"{one.exchanges} of {figures.several(one.of, 'exchange')} {exact}"]
    facts += [figures.several(one.sockets, "socket"), figures.duration(one.seconds)]
    if one.live:
        facts.append(one.live)
    if one.programs:
        facts.append(f"not captured: {', '.join(one.programs[:4])}")
    return printable(" · ".join(facts))


def summary(gate: Gate) -> str:
    """Return the result of a check in one line."""
    if not gate.checks:
        return "the manifest names no tape, so there is nothing to check"
    counts = [
        f"{len(gate.of(verdict))} {label}"
        for verdict, label in (
            (Verdict.PASS, "passed"),
            (Verdict.FAIL, "failed"),
            (Verdict.UNDECIDED, "undecided"),
        )
        if gate.of(verdict)
    ]
    tapes = figures.several(len(gate.checks), "tape")
    return (
        f"{tapes}: {', '.join(counts)} · {figures.duration(gate.seconds)} · {_CLOSED[gate.closed]}"
    )


def next_command(gate: Gate) -> str:
    """Return what to type next; empty if all is well."""
    folder = shlex.quote(tape_names.shown(gate.folder))
    if not gate.checks:
        return f"tracefork ci record --into {folder} SCRIPT.py"
    bad = gate.of(Verdict.FAIL) or gate.of(Verdict.UNDECIDED)
    return f"tracefork ci replay {shlex.quote(bad[0].name)} {folder}" if bad else ""


def _print_failure(console: Console, one: Checked) -> None:
    console.print()
    console.print(printable(one.name), style=screen.STRONG)
    if one.divergence is not None:
        print_card(console, one.divergence, agent=None)
        return
    console.print(f"  {printable(one.reason)}", soft_wrap=True)
    for line in one.said:
        console.print(f"  │ {printable(line)}", style=screen.DIM, soft_wrap=True)

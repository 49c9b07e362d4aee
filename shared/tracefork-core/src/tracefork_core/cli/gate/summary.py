"""The check of a folder in Markdown, for the summary of a CI job or a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.cli.display.diff_markdown import escaped, fenced
from tracefork_core.cli.gate.gate_report import MARKS, next_command, summary, words
from tracefork_core.cli.gate.junit import details
from tracefork_core.cli.gate.verdict import Gate, Verdict

_SHOWN = 20


def markdown(gate: Gate) -> Iterator[str]:
    """Yield the lines: the result, a table of the tapes, and what failed."""
    yield f"### {MARKS[gate.verdict]} {escaped(summary(gate))}"
    yield ""
    if gate.checks:
        yield "| | tape | result |"
        yield "|---|---|---|"
    for one in gate.checks:
        yield f"| {MARKS[one.verdict]} | {escaped(one.name)} | {escaped(words(one))} |"
    for name in gate.orphans:
        yield f"| ! | {escaped(name)} | in no entry of the manifest, so it is not checked |"
    failed = gate.of(Verdict.FAIL)
    for one in failed[:_SHOWN]:
        yield ""
        yield f"**{escaped(one.name)}**"
        yield ""
        yield from fenced("\n".join(details(one)), "text")
    if len(failed) > _SHOWN:
        yield ""
        yield f"… {len(failed) - _SHOWN} more"
    if following := next_command(gate):
        yield ""
        yield f"next: {escaped(following)}"

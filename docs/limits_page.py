"""Render reference/limits.md from limits.toml: `python docs/limits_page.py`.

tests/docs/test_limits.py fails while the page and the data differ.
"""

from __future__ import annotations

import textwrap
import tomllib
from itertools import groupby
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "reference" / "limits.md"
HEAD = """\
<!-- Rendered from docs/limits.toml by docs/limits_page.py: change that file, not this one. -->

# The complete list of limits

The limits that matter most are on [What tracefork cannot see](../limits.md). *Silent* means that
nothing tells you. *Diverges* means that the replay ends with a `DivergenceError` (exit code 1) that
names the first difference. Numbers in parentheses are [exit codes](cli.md#exit-codes).
"""


def limits() -> list[dict[str, object]]:
    """Return the entries of limits.toml, each with area, what, happens, shows, remedy, tests."""
    entries: list[dict[str, object]] = tomllib.loads((DOCS / "limits.toml").read_text())["limit"]
    return entries


def page() -> str:
    """Return the page as Markdown, wrapped at 100 columns."""
    parts = [HEAD]
    for area, entries in groupby(limits(), key=lambda entry: entry["area"]):
        parts.append(f"## {area}\n")
        parts.extend(_entry(entry) for entry in entries)
    return "\n".join(parts)


def _entry(entry: dict[str, object]) -> str:
    lines = [
        f"- **{entry['what']}.** {entry['happens']}",
        f"  - Notice: {entry['shows']}.",
        f"  - Do: {entry['remedy']}",
    ]
    if isinstance(tests := entry["tests"], list) and tests:
        lines.append(f"  - Test: {', '.join(f'`{test}`' for test in tests)}")
    return "\n".join(_wrapped(line) for line in lines) + "\n"


def _wrapped(line: str) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


if __name__ == "__main__":
    PAGE.write_text(page())

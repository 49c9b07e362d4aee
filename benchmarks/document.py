"""The tables of a document, between two marks: a run writes them, never a person."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from peers import PEERS, TIMEFORK
from table import Measurement

BEGIN = "<!-- Written by `tox -e benchmarks -- --write docs/benchmarks.md`, up to the end mark. -->"
END = "<!-- The end mark. -->"
SUMMARY = "Aims, and the best of the others"
OURS = ("tracefork-core", "tracefork-core, closed", "TapeSaver", "blame, its first suspect")
"""The rows that are ours."""
OTHERS = (
    *PEERS,
    TIMEFORK,
    *("forkline 0.5.0", "SqliteSaver", "InMemorySaver"),
    *("largest drop", "point of commitment", "controlled commitment", "flip rate"),
    "single-order Shapley",
)
_MORE_IS_BETTER = ("/s", "% right")
_HEAD = ("case", "variant", "median", "quartiles", "n", "compared", "aim", "")
_SUMMARY_HEAD = ("case", "aim", "ours", "", "best of the others", "ours is")


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table, as text."""

    case: str
    who: str
    median: str
    quartiles: str
    n: str
    compared: str
    aim: str
    verdict: str

    @property
    def value(self) -> float:
        """The median as a number."""
        return float(self.median.split()[0].replace(",", ""))

    @property
    def more_is_better(self) -> bool:
        """Whether a larger number is the better one."""
        return self.median.endswith(_MORE_IS_BETTER)


@dataclass(frozen=True, slots=True)
class Section:
    """A measurement, as text."""

    title: str
    lines: Sequence[Line]
    method: str
    setting: str

    @classmethod
    def of(cls, measurement: Measurement, setting: str) -> Section:
        """Return the section of a new measurement."""
        lines = [Line(row.case, *row.cells()) for row in measurement.rows]
        return cls(measurement.title, lines, measurement.method, setting)

    def text(self) -> str:
        """Return it as Markdown."""
        rows: list[tuple[str, ...]] = []
        for case, lines in groupby(self.lines, lambda line: line.case):
            rows.extend(("" if n else case, *_cells(line)[1:]) for n, line in enumerate(lines))
        table = _table(_HEAD, rows)
        return f"## {self.title}\n\n{table}\n\n{_filled(self.method)}\n\n{_filled(self.setting)}\n"

    @classmethod
    def read(cls, text: str) -> Section:
        """Return the section that `text` writes."""
        title, table, method, setting = text.strip().split("\n\n")
        lines: list[Line] = []
        for row in table.splitlines()[2:]:
            case, *cells = (cell.strip() for cell in row.split("|")[1:-1])
            lines.append(Line(case or lines[-1].case, *cells))
        return cls(title.removeprefix("## "), lines, method, setting)


def write(path: Path, new: Section, order: Sequence[str]) -> None:
    """Replace the section with the same title, and compute the summary again."""
    before, sections, after = read(path)
    kept = {one.title: one for one in [*sections, new]}
    ordered = [kept[title] for title in order if title in kept]
    path.write_text(f"{before}{BEGIN}\n\n{written(ordered)}\n{END}{after}")


def read(path: Path) -> tuple[str, list[Section], str]:
    """Return the text before the tables, the sections, and the text after them."""
    before, rest = path.read_text().split(BEGIN)
    tables, after = rest.split(END)
    texts = tables.split("\n## ")[1:]
    return before, [Section.read(text) for text in texts if not text.startswith(SUMMARY)], after


def written(sections: Sequence[Section]) -> str:
    """Return the text between the marks."""
    return "\n".join([summary(sections), *(one.text() for one in sections)])


def summary(sections: Sequence[Section]) -> str:
    """Return every aim with its result, and every case in which others were measured too."""
    rows = [row for section in sections for row in _summed(section)]
    aims, beside = [row[3] for row in rows if row[1]], [row[5] for row in rows if row[4]]
    words = (
        f"{len(aims)} aims: {aims.count('met')} met, {aims.count('**missed**')} missed. "
        f"{len(beside)} cases with others: ours is better in {beside.count('better')}, "
        f"worse in {beside.count('**worse**')}, as good in {beside.count('as good')}."
    )
    return f"## {SUMMARY}\n\n{_filled(words)}\n\n{_table(_SUMMARY_HEAD, rows)}\n"


def _summed(section: Section) -> Iterator[tuple[str, ...]]:
    for case, grouped in groupby(section.lines, lambda line: line.case):
        lines = list(grouped)
        others = [line for line in lines if line.who in OTHERS]
        for line in lines:
            rivals = others if line.who in OURS else []
            if not (line.aim or rivals):
                continue
            what = f"{section.title}: {case}" if line.who in OURS else _what(section, line)
            ours = f"{line.median} ({line.compared})" if line.compared else line.median
            verdict = line.verdict.replace("missed", "**missed**")
            yield what, line.aim, ours, verdict, *_beside(line, rivals)


def _what(section: Section, line: Line) -> str:
    return f"{section.title}: {line.case}, {line.who}"


def _beside(line: Line, others: Sequence[Line]) -> tuple[str, str]:
    if not others:
        return "", ""
    choose = max if line.more_is_better else min
    best = choose(others, key=lambda other: other.value)
    words = f"{best.median}, {best.who}"
    if best.value == line.value:
        return words, "as good"
    return words, "better" if choose(best.value, line.value) == line.value else "**worse**"


def _cells(line: Line) -> tuple[str, ...]:
    return (
        line.case,
        line.who,
        line.median,
        line.quartiles,
        line.n,
        line.compared,
        line.aim,
        line.verdict,
    )


def _filled(text: str) -> str:
    """Wrap a paragraph as all documents are."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    ruler = ["---"] * len(head)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ruler, *rows])

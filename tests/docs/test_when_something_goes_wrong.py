"""The page of mistakes says what tracefork says."""

from __future__ import annotations

import re

from docs.pages import ROOT

_PAGE = ROOT / "docs" / "how-to" / "when-something-goes-wrong.md"
_GOLDEN = ROOT / "shared" / "tracefork-core" / "tests" / "mistakes" / "golden"
_ROW = re.compile(r"^\| (`.*?) \| (\d+|its own) \| .+ \|$", re.MULTILINE)


def test_each_message_comes_out_with_the_exit_code_beside_it() -> None:
    """Each first cell is in a golden file of a mistake, which ends with the code of the second."""
    told = [path.read_text() for path in sorted(_GOLDEN.glob("*.txt"))]
    found = _ROW.findall(_PAGE.read_text())
    rows = [(cell, code) for cells, code in found for cell in cells.split("`, `")]
    assert len(rows) > 30
    assert [row for row in rows if not any(_says(one, *row) for one in told)] == []


def _says(golden: str, cell: str, code: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in cell.partition("` (")[0].strip("`").split("…"))
    ends = golden.endswith(f"exit {code}\n") or code == "its own"
    return ends and re.search(pattern, golden) is not None

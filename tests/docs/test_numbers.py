"""Every number in the prose of a README is traced to the command or the test that gives it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from tracefork_core import errors
from tracefork_testkit.faults import JSON_PIECE

ROOT = Path(__file__).parents[2]
READMES = [ROOT / "README.md", *sorted(ROOT.glob("*/*/README.md")), ROOT / "benchmarks/README.md"]
CORE, LANGGRAPH, TESTKIT = (
    "shared/tracefork-core",
    "packages/tracefork-langgraph",
    "shared/tracefork-testkit",
)
TRACED = {
    ("README.md", "$0"): f"{CORE}/tests/cli/test_replay.py",
    (f"{LANGGRAPH}/README.md", "800 steps"): "tox -e benchmarks -- --only checkpoints",
    (f"{LANGGRAPH}/README.md", "400 characters"): "tox -e benchmarks -- --only checkpoints",
    (f"{LANGGRAPH}/README.md", "64 bits"): f"{LANGGRAPH}/tests/saver/test_types.py",
    (f"{TESTKIT}/README.md", "a 500 that says so"): f"{TESTKIT}/tests/test_script.py",
    (f"{TESTKIT}/README.md", "64 bytes of a JSON"): "tests/docs/test_numbers.py",
}
"""The page of a number and the words it stands in: what gives it. Exit codes are below."""

_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_NO_PROSE = re.compile(r"`[^`\n]*`|\]\([^)]*\)")
_NUMBER = re.compile(r"(?<![\w.])\$?\d[\d.,]*(?![\w])")
_VERSION = re.compile(r"\d+(\.\d+)+")
_ALL = re.MULTILINE | re.DOTALL
_UNIT = re.compile(r"\s(?:[kMG]?B|m?s|µs|%|x)\b")


def untraced(page: str, text: str) -> list[str]:
    """Return the lines with a number that nothing is said to give."""
    known = [words for (name, words) in TRACED if name == page]
    found = []
    for line in prose(text).splitlines():
        left = line
        for words in known:
            left = left.replace(words, "")
        if any(is_number(left, one) for one in _NUMBER.finditer(left)):
            found.append(line)
    return found


def prose(text: str) -> str:
    """Return a page without blocks, code, links and the table of exit codes."""
    text = _NO_PROSE.sub("", _BLOCK.sub("", text))
    return re.sub(r"^\| error \| exit \|.*?\n\n", "", text, flags=re.MULTILINE | re.DOTALL)


def is_number(line: str, found: re.Match[str]) -> bool:
    """Return whether it is neither a version nor an address."""
    said = found[0].rstrip(".,")
    return not _VERSION.fullmatch(said) or bool(_UNIT.match(line, found.end()))


def test_every_number_is_traced() -> None:
    """A number that no command and no test gives has no place in a README."""
    for page in READMES:
        name = str(page.relative_to(ROOT))
        assert untraced(name, page.read_text()) == [], name


def test_a_number_that_is_not_traced_is_found() -> None:
    """The control: measurements with and without a dot, and dollars; versions are let through."""
    lines = ["It is 12 times faster.", "It takes 2.5 MB.", "It saves $30."]
    let_through = ["With Python 3.11 on 127.0.0.1, by httpx2.", "Run `tracefork show t.tape 2`."]
    assert untraced("README.md", "\n".join(lines + let_through)) == lines


def test_what_gives_a_number_is_there() -> None:
    """Each test is a file; each command is named in the very line, and is a measurement."""
    for (name, words), given in TRACED.items():
        lines = [line for line in prose((ROOT / name).read_text()).splitlines() if words in line]
        assert lines, f"{name} does not say {words!r} any more: nothing is to be traced"
        if given.startswith("tox "):
            assert f"`{given}`" in (ROOT / name).read_text()
            assert (ROOT / "benchmarks" / f"{given.split()[-1]}.py").is_file()
        else:
            assert (ROOT / given).is_file()


def test_exit_codes_are_those_of_the_errors() -> None:
    """The table of core's README."""
    page = (ROOT / "shared/tracefork-core/README.md").read_text()
    listed = re.findall(r"^\| `(\w+Error)` \| (\d) \|", page, re.MULTILINE)
    assert len(listed) == 6
    assert [(name, getattr(errors, name).exit_code) for name, _ in listed] == [
        (name, int(code)) for name, code in listed
    ]


def test_the_wrong_replays_are_as_many_as_is_said() -> None:
    """The explanation of how it is tested names the size of the table, and what it shows."""
    page = (ROOT / "docs/explanation/how-it-is-tested.md").read_text()
    tests = ROOT / CORE / "tests/session"
    table = runpy.run_path(str(tests / "wrong_replays.py"))["TWISTS"]
    lanes = re.search(r"^LANES = \{(.*?)^\}", (tests / "test_wrong_replays.py").read_text(), _ALL)
    assert lanes is not None
    changes = sum(len(twists) for _, twists in table.values())
    said = " ".join(page.split())
    assert f"changes {len(table)} agents between their recording and a replay, in {changes}" in said
    assert f"None of the {changes} replays may be proven" in said
    assert f"{lanes[1].count('): (')} of them change nothing but the thread, task" in said


def test_the_layers_and_the_hostile_tapes_are_as_many_as_is_said() -> None:
    """The explanation of how it is tested names the sizes of two generators."""
    page = " ".join((ROOT / "docs/explanation/how-it-is-tested.md").read_text().split())
    layers = runpy.run_path(str(ROOT / CORE / "tests/masking/layers.py"))
    kinds = len(layers["TOKENS"]) + len(layers["VALUES"])
    assert f"wraps {kinds} kinds of secret in up to three of {len(layers['LAYERS'])}" in page
    tapes = runpy.run_path(str(ROOT / CORE / "tests/hostile/hostile_tapes.py"))["TAPES"]
    assert f"[{len(tapes)} tapes]" in page


def test_a_piece_of_an_answer_is_as_large_as_is_said() -> None:
    """The test kit's README names the size that its faults go by."""
    page = ROOT / TESTKIT / "README.md"
    assert f"{JSON_PIECE} bytes of a JSON answer" in page.read_text()

"""No example on any page is there to be read alone: each is run, or says why not."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from docs.pages import EXCEPTIONS, ROOT, blocks, follow, is_excepted, sets_up
from typer.main import get_command

PAGES = sorted(
    str(page.relative_to(ROOT))
    for pattern in ("README.md", "docs/**/*.md", "*/*/README.md", "examples/**/README.md")
    for page in ROOT.glob(pattern)
    if ".tox" not in page.parts
)
_TESTS = [*ROOT.glob("tests/docs/*.py"), *ROOT.glob("packages/*/tests/**/*.py")]
_INSTALLED = re.compile(r"(\.{1,2}/[\w/.-]+)(?:\[(\w+(?:,\w+)*)\])?")
_COMMAND = re.compile(r"tracefork (\w+)([^`#|\n]*)")


def test_every_example_is_run_or_says_why_not() -> None:
    """Each example in Python, command and shown output is on a page that a test follows."""
    sources = "".join(test.read_text() for test in _TESTS)
    followed = {page for page in PAGES if re.search(rf'follow\(\s*"{re.escape(page)}"', sources)}
    assert len(followed) > 10
    alone = [
        f"{block.page}:{block.line} {text.partition(chr(10))[0]}"
        for page in PAGES
        if page not in followed
        for block in blocks(page)
        if block.kind in {"console", "python", "text"}
        for text in [command for command, _ in block.steps] or [block.text]
        if not sets_up(text) and not is_excepted(page, text)
    ]
    assert alone == []


def test_every_exception_is_needed() -> None:
    """Each exception is on its page still."""
    gone = [
        (page, start)
        for page, start in EXCEPTIONS
        if not (ROOT / page).is_file()
        or not any(
            text.startswith(start)
            for block in blocks(page)
            for text in [*(command for command, _ in block.steps), block.text]
        )
    ]
    assert gone == []


def test_a_file_that_is_saved_is_used() -> None:
    """A command, or another example, names each file that a page has the reader save."""
    idle = []
    for page in PAGES:
        after = list(blocks(page))
        while after:
            block = after.pop(0)
            if block.title and not any(Path(block.title).stem in later.text for later in after):
                idle.append((page, block.title))
    assert idle == []


def test_commands_stand_where_they_are_run() -> None:
    """A line that begins with $ is in a block of a terminal, which a test types."""
    stray = [
        f"{block.page}:{block.line}"
        for page in PAGES
        for block in blocks(page)
        if block.kind != "console" and re.search(r"^\$ ", block.text, re.MULTILINE)
    ]
    assert stray == []


@pytest.mark.parametrize(
    ("example", "complaint"),
    [
        ("```console\n$ echo one\ntwo\n```\n", "two"),
        ("```console\n$ false\n```\n", "false"),
        ("```console\n$ true\n✗ diverged\n```\n", "true"),
        ("```python\nassert 1 == 2\n```\n", "AssertionError"),
        ("```console\n$ echo one\n```\n\n```text\ntwo\n```\n", "two"),
    ],
)
def test_a_page_that_is_not_true_is_noticed(tmp_path: Path, example: str, complaint: str) -> None:
    """Another output, another ending, an example that fails: following the page fails."""
    page = tmp_path / "page.md"
    page.write_text(example)
    with pytest.raises(AssertionError, match=complaint):
        follow(str(page), tmp_path)


def test_what_is_to_be_installed_is_there() -> None:
    """Each folder that a page installs is a package of this repository, with the extras named."""
    for page in PAGES:
        lines = re.findall(r"pip install (.*)", (ROOT / page).read_text())
        for path, extras in (found for line in lines for found in _INSTALLED.findall(line)):
            project = ROOT / re.sub(r"^[./]+/", "", path) / "pyproject.toml"
            assert project.is_file(), f"{page}: {path}"
            known = tomllib.loads(project.read_text())["project"].get("optional-dependencies", {})
            assert set(filter(None, extras.split(","))) <= set(known), f"{page}: {path}[{extras}]"


def test_every_command_line_has_options_that_exist() -> None:
    """Each command that a page names, in a sentence too, exists, with the options it is given."""
    wrong = []
    for page in PAGES:
        for verb, words in _COMMAND.findall((ROOT / page).read_text()):
            given = re.findall(r"(?<![\w-])--[a-z][\w-]*", words.partition(" -- ")[0])
            if given and (missing := set(given) - _options(verb)):
                wrong.append((page, verb, missing))
    assert wrong == []


def _options(verb: str) -> set[str]:
    command = get_command(import_module(f"tracefork_core.cli.commands.{verb}").app)
    inner = getattr(command, "commands", {}).values()
    options = [option for one in (command, *inner) for option in one.params]
    return {name for option in options for name in option.opts} | {"--help"}

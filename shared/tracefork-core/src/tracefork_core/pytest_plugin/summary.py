"""Print at the end what became of tapes, and replace those that were to be updated."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracefork_core.printable import printable
from tracefork_core.pytest_plugin.outcome import Event, Outcome
from tracefork_core.pytest_plugin.places import fixture_of
from tracefork_core.pytest_plugin.plugin import FOLDER
from tracefork_core.run.use_tape import used

_LINES = 12
"""How many differences of a tape are shown."""


class Summary:
    """Prints what the tests did; there is one, in the process that the user started."""

    def __init__(self, config: pytest.Config, outcome: Outcome) -> None:
        self._config = config
        self._outcome = outcome
        self._deselected = False

    def pytest_deselected(self) -> None:
        """Note that tests were left out."""
        self._deselected = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        """Tests are collected in the workers, which leave the same tests out."""
        option = node.config.option
        self._deselected = self._deselected or bool(option.keyword or option.markexpr)

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        """Print what became of tapes, each kind in a section."""
        write = terminalreporter.write_line
        events = self._outcome.events
        if recorded := _of("recorded", events):
            terminalreporter.section("tapes recorded")
            for event in recorded:
                write(f"{self._shown(event.tape)}{'' if event.is_first else ' (again)'}")
        for kind, title in (
            ("failed", "tapes of failed live tests"),
            ("differs", "runs that differ from their tapes"),
            ("waiting", "tapes updated"),
        ):
            if found := _of(kind, events):
                terminalreporter.section(title)
                for event in found:
                    self._print(write, event)
        if _of("differs", events):
            write("To replace the tapes: pytest --tape-update")
        if imported := _of("imported", events):
            terminalreporter.section("cassettes imported")
            for line in _graded(imported):
                write(line)
        self._replace()
        if orphans := list(self._orphans(exitstatus)):
            terminalreporter.section("tapes without a test")
            for orphan in orphans:
                write(self._shown(orphan))

    def pytest_unconfigure(self) -> None:
        """Replace the tapes where no terminal showed the changes."""
        self._replace()

    def _print(self, write: Any, event: Event) -> None:
        write(self._shown(event.tape))
        for line in event.lines[:_LINES]:
            write(f"  {printable(line)}")
        if (left := len(event.lines) - _LINES) > 0:
            write(f"  {left} more")
        if event.kind != "waiting":
            write(f"  see   tracefork show {self._shown(event.new)}")

    def _replace(self) -> None:
        """Put the tapes that wait into their places."""
        waiting = _of("waiting", self._outcome.events)
        self._outcome.events = [one for one in self._outcome.events if one.kind != "waiting"]
        for event in waiting:
            target = Path(event.tape)
            target.parent.mkdir(parents=True, exist_ok=True)
            beside = target.with_name(f".{target.name}.{os.getpid()}.new")
            shutil.move(event.new, beside)
            beside.replace(target)

    def _orphans(self, exitstatus: int) -> Iterator[str]:
        """Yield the tapes that belong to no test, if all tests of the suite were collected."""
        config, owned = self._config, self._outcome.owned
        option = config.option
        is_part = (
            config.args_source is pytest.Config.ArgsSource.ARGS
            or self._deselected
            or option.keyword
            or option.markexpr
            or getattr(option, "lf", False)
            or option.collectonly
            or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        )
        if is_part:
            return
        owned = owned | used
        folders = {folder for one in owned if (folder := _tapes_around(Path(one))) is not None}
        series = {str(Path(one).with_suffix("")) for one in owned}
        for folder in sorted(folders):
            for tape in sorted(folder.glob("*/**/*.tape")):
                if tape.name.startswith(".") or str(tape) in owned or str(tape.parent) in series:
                    continue
                if fixture_of(tape) not in self._outcome.fixtures:
                    yield str(tape)

    def _shown(self, path: str) -> str:
        shown = os.path.relpath(path, self._config.invocation_params.dir)
        return printable(path if shown.startswith("..") else shown)


def _graded(imported: list[Event]) -> Iterator[str]:
    """Yield how many cassettes have which grade, and what was compared besides."""
    for grade, count in Counter(event.lines[0] for event in imported).items():
        yield f"{count} of {len(imported)} {grade}"
    matched = sorted({event.lines[1] for event in imported})
    yield f"vcrpy compares: {'; or '.join(map(printable, matched))}"
    yield "also compared: headers and bodies as far as kept, JSON by its values; each call is made"


def _of(kind: str, events: list[Event]) -> list[Event]:
    return sorted((one for one in events if one.kind == kind), key=lambda one: one.tape)


def _tapes_around(tape: Path) -> Path | None:
    return next((parent for parent in tape.parents if parent.name == FOLDER), None)

"""Open the tape of a test before its own fixtures, and close it after them.

Order of a test: the fixtures that it shares with others are set up first and have tapes of their
own. The tape of the test opens before the first fixture of the test alone, so what that asks is on
it. It closes as the test function ends, so that a difference is the failure of the test. Where a
fixture of the test has a teardown, it closes after that, because a teardown may ask too.

The session has process scope: a test owns its process while it runs, whatever event loop or thread
was there before.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tracefork_core.errors import TraceforkError, UsageError
from tracefork_core.pytest_plugin.keys import Keys
from tracefork_core.pytest_plugin.options import default_mode, options_of
from tracefork_core.pytest_plugin.outcome import Outcome
from tracefork_core.pytest_plugin.places import tape_of_test
from tracefork_core.pytest_plugin.plugin import BEGAN, has_cassette, has_tape
from tracefork_core.pytest_plugin.repeated import run_repeatedly
from tracefork_core.pytest_plugin.shared_fixtures import SharedFixtures, is_of_suite
from tracefork_core.pytest_plugin.summary import Summary
from tracefork_core.pytest_plugin.taped import Taped

if TYPE_CHECKING:
    from tracefork_core.pytest_plugin.handle import Handle

_taped = pytest.StashKey[Taped]()
RUN = pytest.StashKey[int]()
"""Which of its repetitions a test runs, from 1."""


class Running:
    """The part of the plugin that is there once a test has a tape."""

    def __init__(self, config: pytest.Config) -> None:
        self._stack = ExitStack()
        self._config = config
        self.outcome = Outcome(config)
        self.take_in = self.outcome.take_in
        self.keys = Keys(self._stack)
        self._opening: set[pytest.Item] = set()
        self._fixtures = SharedFixtures(config, self.outcome, self.keys, self._stack)
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Summary(config, self.outcome), "tracefork-summary")

    def pytest_unconfigure(self) -> None:
        """Undo what is left."""
        self._stack.close()

    def collected(self, items: list[pytest.Item]) -> None:
        """Take in the tests with a tape, before any of them runs."""
        items = [item for item in items if not has_cassette(item)]
        try:
            mode = default_mode(self._config)
            self.outcome.own(tape_of_test(item) for item in items)
            for item in items:
                options_of(item)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
        self._fixtures.collected(items)
        if mode in ("none", "once"):
            for folder in {tape_of_test(item).parent.parent for item in items}:
                if folder.is_dir():
                    self.keys.look_in(folder)

    def handle_of(self, item: Any) -> Handle:
        """Return what the fixture `tape` gives."""
        from tracefork_core.pytest_plugin.handle import Handle  # Loaded here: it takes long.

        return Handle(self._open(item))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a test several times, where its mark says so."""
        if not has_tape(item):
            return None
        options = options_of(item)
        if options.repeat is None:
            return None
        run_repeatedly(item, nextitem, options, RUN)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: Any, request: Any
    ) -> Generator[None, object, object]:
        """Open the tape of a test before its first fixture, and those of shared fixtures."""
        __tracebackhide__ = True
        if fixturedef.scope != "function":
            with self._fixtures.taped(fixturedef, request):
                return (yield)
        item = request.node
        if has_tape(item) and item not in self._opening:
            self._open(item)
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run a test on its tape."""
        __tracebackhide__ = True
        if not has_tape(item):
            return (yield)
        taped = self._open(item)
        try:
            result = yield
        except BaseException as error:
            taped.failed(error)
            raise
        if not _has_teardown(item):
            taped.close()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show the card of a difference alone: it says which line asked for what."""
        report = yield
        error = call.excinfo
        if error is None or not has_tape(item):
            return report
        if _taped in item.stash:
            item.stash[_taped].note(error.value)
        if isinstance(error.value, TraceforkError):
            report.longrepr = error.getrepr(style="value", chain=False)
            report.tracefork_error = True  # type: ignore[attr-defined]
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Hand what happened to the process that prints."""
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["tracefork"] = self.outcome.document()

    def _open(self, item: pytest.Item) -> Taped:
        __tracebackhide__ = True
        taped = item.stash.get(_taped, None)
        if taped is not None and (taped.is_open or taped.run is not None):
            return taped
        if has_cassette(item):
            return self._begin(item, self._of_cassettes(item))
        options, path = options_of(item), tape_of_test(item)
        if (number := item.stash.get(RUN, 0)) > 0:
            path = path.with_suffix("") / f"{number:02}{path.suffix}"
        taped = Taped(
            path,
            options.mode,
            options.of_blocks,
            self.outcome,
            strict=options.strict,
            began=self._config.stash[BEGAN],
            is_sample=number > 0,
        )
        return self._begin(item, taped)

    def _of_cassettes(self, item: pytest.Item) -> Taped:
        """Return the tape of a test with the mark `vcr`. Fixtures that name it have no tape."""
        __tracebackhide__ = True
        from tracefork_core.pytest_plugin.cassettes import CassetteTape, tape_of_cassettes

        self._opening.add(item)
        try:
            path, options = tape_of_cassettes(item, self.outcome)
        finally:
            self._opening.discard(item)
        return CassetteTape(path, "none", options, self.outcome)

    def _begin(self, item: pytest.Item, taped: Taped) -> Taped:
        __tracebackhide__ = True
        taped.__enter__()
        self.keys.read_again()
        item.stash[_taped] = taped
        item.addfinalizer(lambda: _finish(item, taped))
        return taped


def _finish(item: pytest.Item, taped: Taped) -> None:
    """Close the tape of a test whose fixtures are gone; its next run has another."""
    __tracebackhide__ = True
    if _taped in item.stash:
        del item.stash[_taped]
    taped.close()


def _has_teardown(item: pytest.Item) -> bool:
    """Return whether a fixture of this test alone does something after the test."""
    information = getattr(item, "_fixtureinfo", None)
    if information is None:
        return False
    return any(
        inspect.isgeneratorfunction(definition.func) or inspect.isasyncgenfunction(definition.func)
        for definitions in information.name2fixturedefs.values()
        for definition in definitions[-1:]
        if definition.scope == "function" and is_of_suite(definition, item.config)
    )

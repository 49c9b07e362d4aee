"""Give a fixture that several tests share a tape of its own.

What a fixture of a module or a session asks belongs to no single test: which test comes first
changes with the order, with `-k` and with the number of workers. On the tape of the first test, it
would be missing wherever another one is first. So it is recorded once, on a tape named after the
fixture, and each process that sets it up replays that.

A fixture that asks for nothing has no tape. Where nothing may be recorded, it runs under a session
that refuses to ask: connections of other kinds, to a database say, are let through.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tracefork_core.errors import UsageError
from tracefork_core.exchange.current import current_session
from tracefork_core.pytest_plugin.options import default_mode
from tracefork_core.pytest_plugin.places import name_of_fixture, tape_of_fixture
from tracefork_core.pytest_plugin.plugin import BEGAN
from tracefork_core.pytest_plugin.taped import Taped
from tracefork_core.run.record import record
from tracefork_core.tape import Exchange, Tape

if TYPE_CHECKING:
    from tracefork_core.exchange.contract import Request
    from tracefork_core.pytest_plugin.keys import Keys
    from tracefork_core.pytest_plugin.outcome import Outcome

_OF_PYTEST = ("_xunit_setup_", "_unittest_setUp")
"""Fixtures that pytest makes of `setup_module`, `setUpClass` and their like."""


class SharedFixtures:
    """The fixtures that tests with a tape share."""

    def __init__(
        self, config: pytest.Config, outcome: Outcome, keys: Keys, stack: ExitStack
    ) -> None:
        self._config = config
        self._keys = keys
        self._stack = stack
        self._outcome = outcome
        self._shared: set[int] = set()
        self._empty: Path | None = None

    def collected(self, items: list[pytest.Item]) -> None:
        """Note the fixtures of these tests: they have tapes, whichever test sets them up."""
        for item in items:
            information = getattr(item, "_fixtureinfo", None)
            for definitions in information.name2fixturedefs.values() if information else ():
                for definition in definitions:
                    if definition.scope != "function" and is_of_suite(definition, self._config):
                        self._shared.add(id(definition))
                        self._outcome.fixtures.add(name_of_fixture(definition))

    @contextmanager
    def taped(self, definition: Any, request: Any) -> Iterator[None]:
        """Set up a fixture on its tape, if it is shared by tests with tapes."""
        __tracebackhide__ = True
        if id(definition) not in self._shared:
            yield
            return
        if (session := current_session()) is not None:
            before = session.asked  # type: ignore[attr-defined]
            yield
            if session.asked != before:  # type: ignore[attr-defined]
                raise UsageError(
                    f"tracefork: the fixture {definition.argname} is shared by tests, and was set "
                    "up in the middle of one. Name it as an argument of the test, so that what it "
                    "asks gets a tape of its own."
                )
            return
        path, mode = tape_of_fixture(definition, request), default_mode(self._config)
        if not path.exists() and mode in ("none", "rerun"):
            with self._closed(definition.argname, path):
                yield
            return
        taped = _TapedFixture(path, mode, {}, self._outcome, began=self._config.stash[BEGAN])
        with taped:
            self._keys.read_again()
            yield

    @contextmanager
    def _closed(self, name: str, path: Path) -> Iterator[None]:
        """Refuse each request that a seam sees."""
        __tracebackhide__ = True

        def refuse(request: Request, place: Exchange | None) -> None:
            raise UsageError(
                f"tracefork: the fixture {name} asks for {request.method} {request.url}, and has "
                f"no tape {path}. Record it: pytest --tape-mode=once."
            )

        from tracefork_core.run.rerun import rerun  # Loaded here: it takes long.

        empty = self._empty_tape()
        # The clock and random values stay real: the tape has none of this fixture.
        with rerun(
            empty,
            before_live=refuse,
            rerun_tools=True,
            to=empty.with_name("run.tape"),
            overwrite=True,
            clock=False,
            entropy=False,
            scope="process",
        ):
            yield

    def _empty_tape(self) -> Path:
        if self._empty is None:
            folder = tempfile.TemporaryDirectory(prefix="tracefork-")
            self._empty = Path(self._stack.enter_context(folder)) / "empty.tape"
            with record(self._empty):
                pass
        return self._empty


class _TapedFixture(Taped):
    """The tape of a fixture; it is only kept if it holds anything."""

    def keep(self, new: Path) -> None:
        with Tape.open(new) as tape:
            is_empty = not tape.exchanges
        if is_empty:
            new.unlink()
        else:
            super().keep(new)


def is_of_suite(definition: Any, config: pytest.Config) -> bool:
    """Return whether a fixture is the suite's own, and not one of pytest or a plugin."""
    if definition.argname.startswith(_OF_PYTEST):
        return True
    code = getattr(definition.func, "__code__", None)
    if code is None:
        return False
    file = Path(code.co_filename)
    return file.is_relative_to(config.rootpath) and "site-packages" not in file.parts

"""What pytest loads: options, the mark `tape`, the fixture `tape`.

Every pytest run of an environment loads this file, used or not. So it imports nothing but pytest;
the rest is loaded when the first test with a tape is collected.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tracefork_core.pytest_plugin.handle import Handle

VARIABLE = "TRACEFORK_TAPE_MODE"
"""As in `run.use_tape`, which is loaded later."""
MODES = ("none", "once", "new", "rewrite", "rerun")
FOLDER = "tapes"
MARK = "tape"
"""The mark of a test with a tape."""
CASSETTE = "vcr"
"""The mark of a test with a cassette. It is read with --tape-import alone."""
_ACTIVE = "tracefork-running"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, each of which may stand in pytest's settings too."""
    group = parser.getgroup("tracefork", "tapes of agents (tracefork)")
    group.addoption(
        "--tape-mode",
        choices=MODES,
        help="What tests with a tape do: none replays (default), once records missing tapes, new "
        "adds what is asked in addition, rewrite records again, rerun asks live for what differs.",
    )
    group.addoption(
        "--tape-update",
        action="store_true",
        help="Show how each tape would change, then replace it. Without --tape-mode, only what "
        "differs is asked live.",
    )
    group.addoption(
        "--tape-artifacts",
        metavar="DIR",
        help="Where tapes of failed live tests go (default: .pytest_cache/tapes).",
    )
    group.addoption(
        "--tape-import",
        action="store_true",
        help="Replay tests with the mark vcr from their cassettes, without vcrpy.",
    )
    parser.addini("tape_mode", "As --tape-mode.", default="")
    parser.addini("tape_artifacts", "As --tape-artifacts.", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Describe the mark, and set the mode for `use_tape` and for child processes."""
    config.addinivalue_line(
        "markers",
        "tape(mode, allow, match, mask, strict, writes, reads, tools, repeat, pass_rate, "
        "confidence): record this test once, and replay it from its tape from then on.",
    )
    if config.getoption("--tape-import"):
        from tracefork_core.pytest_plugin.cassettes import disable_vcrpy

        config.addinivalue_line("markers", "vcr: replay this test from its cassette.")
        config.addinivalue_line("markers", "default_cassette(name): the name of the cassette.")
        disable_vcrpy(config)
    mode = config.getoption("--tape-mode")
    if config.getoption("--tape-update") and mode is None:
        mode = "rerun"
    if mode is not None:
        config.stash[_before] = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = mode
    given: dict[str, Any] = getattr(config, "workerinput", {})
    config.stash[BEGAN] = given.get("tracefork_began", time.time())


BEGAN = pytest.StashKey[float]()
"""When this run of tests began, in all its processes."""
_before = pytest.StashKey["str | None"]()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the environment as it was."""
    if _before in config.stash:
        before = config.stash[_before]
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist when the run began, and listen for what its tests did."""
    node.workerinput["tracefork_began"] = node.config.stash[BEGAN]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take in what the tests of a worker did."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    if "tracefork" in output:
        _activate(node.config).take_in(output["tracefork"])


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
    """Stand in for keys that are not set, where a module of tests has tapes.

    A module that makes a client as it is imported needs a key before any test runs.
    """
    config = parent.config
    if (os.environ.get(VARIABLE) or config.getini("tape_mode") or "none") != "none":
        _activate(config).keys.note()
    folder = module_path.parent / FOLDER / module_path.stem
    if folder.is_dir():
        _activate(config).keys.look_in(folder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Load the rest if a test has a tape."""
    taped = [item for item in items if has_tape(item)]
    if taped:
        _activate(config).collected(taped)


def has_tape(item: pytest.Item) -> bool:
    """Return whether a test has the mark, or asks for the fixture of this plugin."""
    if item.get_closest_marker(MARK) is not None or has_cassette(item):
        return True
    if MARK not in getattr(item, "fixturenames", ()):
        return False
    information: Any = getattr(item, "_fixtureinfo", None)
    found = information.name2fixturedefs.get(MARK) if information is not None else None
    # A suite may have a fixture of this name itself.
    return found is not None and found[-1].func.__module__ == __name__


def has_cassette(item: pytest.Item) -> bool:
    """Return whether a test is replayed from a cassette."""
    return (
        bool(item.config.getoption("--tape-import"))
        and item.get_closest_marker(CASSETTE) is not None
        and item.get_closest_marker(MARK) is None
    )


@pytest.fixture
def tape(request: pytest.FixtureRequest) -> Handle:
    """The tape of this test: `exchanges`, `tools`, `tokens`, `cost`, `path`."""
    handle: Handle = _activate(request.config).handle_of(request.node)
    return handle


def _activate(config: pytest.Config) -> Any:
    """Return what runs the tests with a tape; load it if it is not there yet."""
    running = config.pluginmanager.get_plugin(_ACTIVE)
    if running is None:
        from tracefork_core.pytest_plugin.running import Running

        running = Running(config)
        config.pluginmanager.register(running, _ACTIVE)
    return running

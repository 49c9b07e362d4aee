"""A suite that does not use the plugin pays nothing; two processes share a tape; scripts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from adapters.suites import Suite

from tracefork_core import DivergenceError, assert_matches, assert_no_diff, record
from tracefork_core.pytest_plugin.places import file_name

CONFTEST = """
import sys

def pytest_unconfigure():
    found = [name for name in sys.modules if name.startswith("tracefork_core.")]
    print("LOADED", sorted(found))

import pytest

@pytest.fixture
def tape():
    return "a cassette of mine"
"""


def test_a_suite_without_the_mark_loads_nothing_of_it(suite: Suite) -> None:
    """A suite may have a fixture called `tape` itself."""
    (suite.folder / "conftest.py").write_text(CONFTEST)
    (suite.folder / "test_own.py").write_text(
        "def test_own(tape):\n    assert tape == 'a cassette of mine'\n"
    )
    result = suite.apart()
    assert result.failed == set(), result.text
    loaded = next(line for line in result.text.splitlines() if "LOADED" in line)
    assert loaded.partition("LOADED ")[2] == str(
        [f"tracefork_core.{name}" for name in ("pytest_plugin", "pytest_plugin.plugin", "version")]
    )
    assert not (suite.folder / "tapes").exists()


def test_two_processes_at_once_record_a_tape_once(suite: Suite) -> None:
    """The second waits, and replays what the first has recorded."""
    suite.write("import pytest\n@pytest.mark.tape\ndef test_it():\n    ask('@slow 1')\n")
    processes = [suite.start("--tape-mode=once") for _ in range(2)]
    texts = [process.communicate(timeout=100)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], texts
    assert suite.asked == 1
    assert sum("tapes recorded" in text for text in texts) == 1
    assert suite.tapes == {"test_agent/test_it.tape"}


def test_names_of_files_are_short_plain_and_different() -> None:
    """Ids may hold anything, and be of any length."""
    names = ["a", "a/b", "a:b", "a\\b", "é/", "x" * 300, "x" * 301, "\udc80", "..", "a\nb"]
    files = [file_name(f"test[{name}]") for name in names]
    assert len(set(files)) == len(names)
    assert files[0] == "test[a].tape"
    for name in files:
        assert len(os.fsencode(name)) <= 110
        assert not set(name) & set("/\\:\n")


SCRIPT = "import os, httpx2, sys\nhttpx2.get(os.environ['PROVIDER'] + '/bytes/' + sys.argv[1])\n"


def test_a_function_and_a_script_are_held_to_a_tape(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script runs in a process of its own, and its failure is the card."""
    monkeypatch.chdir(suite.folder)
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    Path("agent.py").write_text(SCRIPT)
    suite.write("")
    scope: dict[str, object] = {}
    exec(compile("import httpx2, os, sys\n" + _AGENT_OF_GET, "agent_of_get.py", "exec"), scope)
    get = scope["get"]
    assert callable(get)
    for name, size in (("nine", 9), ("again", 9), ("ten", 10)):
        with record(f"{name}.tape"):
            get(size)
    assert_no_diff(lambda: get(9), "nine.tape")
    with pytest.raises(DivergenceError):
        assert_no_diff(lambda: get(10), "nine.tape")
    assert_no_diff("agent.py 9", "nine.tape")
    with pytest.raises(AssertionError, match="/bytes/10"):
        assert_no_diff(["agent.py", "10"], "nine.tape")
    assert_matches("again.tape", "nine.tape")
    with pytest.raises(AssertionError, match=r"differs from nine\.tape"):
        assert_matches("ten.tape", "nine.tape")
    assert suite.asked == 3


_AGENT_OF_GET = """
def get(size):
    return httpx2.get(os.environ["PROVIDER"] + "/bytes/" + str(size))
"""

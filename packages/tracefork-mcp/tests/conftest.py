"""Connect to real MCP servers, and record and replay that."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapters.late_clients import pytest_unconfigure  # noqa: F401 - a hook of pytest
from mcp import StdioServerParameters

SERVERS = Path(__file__).with_name("servers")


def pytest_configure(config: pytest.Config) -> None:
    """Ignore streams that the servers of `mcp` 1 leave to the garbage collector."""
    config.addinivalue_line("filterwarnings", "ignore:Unclosed <Memory:ResourceWarning")


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """The path of the test's tape."""
    return tmp_path / "run.tape"


@pytest.fixture
def counter(tmp_path: Path) -> Path:
    """The file in which the server notes that it was started, and what it ran."""
    return tmp_path / "counter"


@pytest.fixture
def counted(counter: Path) -> Callable[[], list[str]]:
    """Return what the servers have noted so far."""
    return lambda: counter.read_text().splitlines() if counter.exists() else []


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The file of the server, which a test may delete."""
    return Path(shutil.copy(SERVERS / "plain.py", tmp_path / "plain.py"))


@pytest.fixture
def plain(program: Path, counter: Path) -> StdioServerParameters:
    """How to start the server `servers/plain.py`."""
    return StdioServerParameters(command=sys.executable, args=[str(program), str(counter)])


@pytest.fixture
def exchanges(tape: Path) -> Callable[[], list[tuple[str, str]]]:
    """Read the method and the URL of each exchange on the tape."""
    import tracefork_core as tracefork

    def read() -> list[tuple[str, str]]:
        with tracefork.Tape.open(tape) as opened:
            return [(one.method, one.url) for one in opened.exchanges]

    return read


def texts(result: Any) -> list[str]:
    """Return the texts of a tool's result."""
    return [part.text for part in result.content]


def is_error(result: Any) -> bool:
    """Return whether a tool failed."""
    return bool(getattr(result, "isError", None) or getattr(result, "is_error", None))

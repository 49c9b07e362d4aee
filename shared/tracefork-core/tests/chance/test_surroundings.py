"""The tape holds what the agent's own code reads of its environment; differences are reported."""

from __future__ import annotations

import importlib.util
import locale
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest

from tracefork_core import DivergenceError, SurroundingsWarning, Tape, record, replay
from tracefork_core.chance.surroundings import Lookout, on_the_lookout
from tracefork_core.tape.surroundings import Seen
from tracefork_testkit import ProviderServer

READS: dict[str, Callable[[], object]] = {
    "item": lambda: os.environ["MODEL"],
    "get": lambda: os.environ.get("MODEL", "none"),
    "getenv": lambda: os.getenv("MODEL"),
    "in": lambda: "MODEL" in os.environ,
    "setdefault": lambda: os.environ.setdefault("MODEL", "none"),
    "bytes": lambda: os.environb[b"MODEL"],
    "getenvb": lambda: os.getenvb(b"MODEL"),
}
COPIES: dict[str, Callable[[], object]] = {
    "dict": lambda: dict(os.environ),
    "copy": lambda: os.environ.copy(),  # noqa: PLW0108
    "stars": lambda: {**os.environ},
    "or": lambda: os.environ | {"MORE": "1"},
    "items": lambda: list(os.environ.items()),
    "values": lambda: list(os.environ.values()),
    "loop": lambda: [os.environ[name] for name in os.environ],
    "sorted": lambda: [os.environ[name] for name in sorted(os.environ)],
    "child": lambda: subprocess.run([sys.executable, "-c", ""], env={**os.environ}, check=True),
}
KEY = "sk-proj-9fK2mQ7xLw3ZrT8vB1nC"
CUSTOMER = "Example & Sons"
PASSWORD = "Tr0ub4dor-and-3"
KILLED = """\
import os, signal, sys
import httpx2
import tracefork_core
with tracefork_core.record(sys.argv[1]), httpx2.Client(verify=False) as client:
    model = os.environ["MODEL"]
    client.post(os.environ["PROVIDER"] + "/echo", content=model.encode())
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "gpt-4o")


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Return a function that moves this process to Tokyo."""

    def move() -> None:
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def seen(tape: Path) -> dict[str, Seen]:
    """Return what a tape holds, by variable or kind."""
    with Tape.open(tape) as opened:
        return {one.name or one.kind: one for one in opened.surroundings}


def module(path: Path) -> ModuleType:
    """Import a module that reads a variable."""
    path.parent.mkdir(parents=True)
    path.write_text("import os\ndef read():\n    return os.environ.get('MODEL')\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_variable_is_recorded_and_compared(
    tape: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[], object]
) -> None:
    """However it is read; another value at replay is a warning."""
    with record(tape):
        value = read()
    assert value == read()
    assert (seen(tape)["MODEL"].kind, seen(tape)["MODEL"].value) == ("variable", "gpt-4o")
    with replay(tape) as run:
        read()
    assert run.differences == []
    monkeypatch.setenv("MODEL", "gpt-5")
    with pytest.warns(SurroundingsWarning, match="MODEL.*'gpt-4o'") as caught:
        with replay(tape) as run:
            read()
    for fact in ("MODEL", "'gpt-4o'", "'gpt-5'", "test_surroundings.py:"):
        assert fact in run.differences[0]
    assert [Path(warning.filename).name for warning in caught] == [Path(__file__).name]


def test_folder_host_locale_and_timezone_are_recorded_and_compared(
    tape: Path, tmp_path: Path
) -> None:
    """Each with the line that reads it."""
    with record(tape):
        assert str(Path.cwd()) == os.getcwd()  # noqa: PTH109
        assert socket.gethostname() == platform.node()
        locale.getlocale()
    found = seen(tape)
    assert found["folder"].value == str(Path.cwd())
    assert found["host"].value == platform.node()
    assert found["locale"].value == ".".join(part or "—" for part in locale.getlocale())
    assert found["timezone"].value == time.strftime("UTC%z %Z")
    assert (found["folder"].site or "").startswith("test_surroundings.py:")
    with replay(tape) as run:
        os.getcwd()  # noqa: PTH109
        platform.node()
        locale.getlocale()
    assert run.differences == []
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        with pytest.warns(SurroundingsWarning, match=re.escape(repr(str(before)))), replay(tape):
            Path.cwd()
    finally:
        os.chdir(before)


@pytest.mark.parametrize("absolute", [os.path.abspath, lambda name: Path(name).resolve()])
def test_making_a_path_absolute_reads_the_working_directory(
    tape: Path, absolute: Callable[[str], object]
) -> None:
    """Unless the path is absolute already."""
    with record(tape):
        absolute("/a/b")
    assert "folder" not in seen(tape)
    with record(tape, overwrite=True):
        absolute("notes.txt")
    assert seen(tape)["folder"].value == str(Path.cwd())


def test_a_missing_variable_differs_from_an_empty_one(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In both directions."""
    monkeypatch.setenv("EMPTY", "")
    with record(tape):
        with pytest.raises(KeyError, match="NOT_THERE"):
            os.environ["NOT_THERE"]
        os.environ.get("EMPTY")
    assert (seen(tape)["NOT_THERE"].value, seen(tape)["EMPTY"].value) == (None, "")
    monkeypatch.setenv("NOT_THERE", "now")
    monkeypatch.delenv("EMPTY")

    def again() -> list[str]:
        with replay(tape) as run:
            os.environ.get("NOT_THERE")
            os.environ.get("EMPTY")
        return run.differences

    with pytest.warns(SurroundingsWarning):
        differences = again()
    assert "NOT_THERE was not set" in differences[0]
    assert "EMPTY was ''" in differences[1]


def test_a_divergence_names_a_variable_that_differs(
    tape: Path, provider: ProviderServer, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a likely cause, if the variable reaches a request."""

    def agent() -> None:
        http.post(f"{provider.url}/echo", content=os.environ["MODEL"].encode())

    with record(tape):
        agent()
    monkeypatch.setenv("MODEL", "gpt-5")
    with pytest.raises(DivergenceError) as raised, replay(tape):
        agent()
    (hint,) = raised.value.divergence.hints
    for fact in ("MODEL", "'gpt-4o'", "'gpt-5'"):
        assert fact in hint
    assert hint in str(raised.value)


def test_an_exception_of_the_agent_carries_the_differences(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As notes."""
    with record(tape):
        assert os.environ["MODEL"] == "gpt-4o"
    monkeypatch.setenv("MODEL", "gpt-5")
    with pytest.raises(AssertionError) as raised, replay(tape):
        assert os.environ["MODEL"] == "gpt-4o"
    assert any("MODEL" in note and "'gpt-4o'" in note for note in raised.value.__notes__)


def test_reads_of_libraries_do_not_count(tape: Path, tmp_path: Path) -> None:
    """Those of the user's own modules do."""
    library = module(tmp_path / "site-packages" / "library.py")
    own = module(tmp_path / "own" / "own.py")
    with record(tape):
        library.read()
    assert "MODEL" not in seen(tape)
    with record(tape, overwrite=True):
        own.read()
    assert seen(tape)["MODEL"].site == "own.py:3"


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES.keys())
def test_copying_the_environment_reads_no_variable(tape: Path, copy: Callable[[], object]) -> None:
    """A child process gets such a copy."""
    with record(tape):
        copy()
    assert set(seen(tape)) <= {"timezone"}


@pytest.mark.parametrize("mode", ["safe", "raw", "metadata"])
def test_the_value_of_a_secret_variable_is_never_on_the_tape(
    tape: Path, written: Callable[[Path], bytes], monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    """Only its name; the control is beside it."""
    secrets = {
        "OPENAI_API_KEY": KEY,
        "DATABASE_URL": f"postgresql://me:{PASSWORD}@localhost/db",
        "CUSTOMER": CUSTOMER,
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    if mode == "raw":
        del secrets["CUSTOMER"]  # That mode masks nothing on demand.
    with record(tape, mode=mode, mask=["CUSTOMER"] * (mode != "raw")):
        for name in secrets:
            assert os.environ[name]
        os.environ["MODEL"]
    held = written(tape)
    assert [one for one in (KEY, PASSWORD, CUSTOMER) if one.encode() in held] == []
    kept = [(seen(tape)[name].withheld, seen(tape)[name].value) for name in secrets]
    assert set(kept) == {(True, None)}
    assert (b"gpt-4o" in held) == (mode != "metadata")


def test_a_secret_inside_a_value_is_masked(
    tape: Path, written: Callable[[Path], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that contains the value of a secret one holds the placeholder instead."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GREETING", f"use {KEY} please")
    with record(tape):
        assert os.environ["GREETING"]
    assert seen(tape)["GREETING"].value == "use tracefork-secret-OPENAI_API_KEY please"
    assert KEY.encode() not in written(tape)


def test_a_long_value_is_stored_shortened(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its beginning, and a digest to tell it from others."""
    monkeypatch.setenv("PROMPT", "word " * 1000)
    with record(tape):
        os.environ["PROMPT"]
    assert len(seen(tape)["PROMPT"].value or "") < 200
    with replay(tape) as run:
        os.environ["PROMPT"]
    assert run.differences == []
    monkeypatch.setenv("PROMPT", "word " * 999 + "Word ")
    with pytest.warns(SurroundingsWarning), replay(tape):
        os.environ["PROMPT"]


def test_the_timezone_counts_once_the_agent_reads_the_clock(
    tape: Path, in_tokyo: Callable[[], None]
) -> None:
    """It is recorded with the clock."""

    def agent() -> str:
        return datetime.now().isoformat()  # noqa: DTZ005

    with record(tape):
        agent()
    with replay(tape) as run:
        agent()
    assert run.differences == []
    in_tokyo()
    with pytest.warns(SurroundingsWarning, match="'UTC.*'UTC[+]0900 JST'"):
        with replay(tape):
            agent()
    with replay(tape) as run:
        pass
    assert run.differences == [], "no clock was read"


def test_without_the_clock_there_is_no_timezone(tape: Path) -> None:
    """The control: a tape recorded with clock=False has none."""
    with record(tape, clock=False):
        time.time()
    assert seen(tape) == {}


def test_a_killed_recording_holds_the_reads(
    tape: Path, provider: ProviderServer, tmp_path: Path
) -> None:
    """Those before an exchange that ended."""
    (tmp_path / "killed.py").write_text(KILLED)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "killed.py"), str(tape)],
        env={**os.environ, "PROVIDER": provider.url, "MODEL": "gpt-4o"},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert seen(tape)["MODEL"].value == "gpt-4o"
    assert seen(tape)["PROVIDER"].value == provider.url


def test_a_session_without_ambient_patching_watches_nothing(tape: Path) -> None:
    """It leaves the environment as it is."""
    before = type(os.environ).__getitem__
    with record(tape, ambient=False):
        assert type(os.environ).__getitem__ is before
        os.environ["MODEL"]
    assert seen(tape) == {}
    with record(tape, overwrite=True):
        assert type(os.environ).__getitem__ is not before
    assert type(os.environ).__getitem__ is before


def test_a_warning_made_an_error_is_raised_at_the_end(
    tape: Path, provider: ProviderServer, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With warnings as errors, the agent runs to its end, and the block raises."""
    with record(tape):
        http.get(f"{provider.url}/bytes/1")
        os.environ["MODEL"]
    monkeypatch.setenv("MODEL", "gpt-5")
    reached = []

    def again() -> None:
        with replay(tape) as run:
            reached.append(run)
            os.environ["MODEL"]
            http.get(f"{provider.url}/bytes/1")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SurroundingsWarning):
            again()
    assert [run.exchanges for run in reached] == [1]


def test_reads_are_seen_in_the_thousandth_session(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.13 stops noticing changes of a class after a thousand; no class is changed."""
    monkeypatch.setenv("MODEL", "gpt-4o")

    def read() -> str:
        return os.environ["MODEL"]

    for _ in range(1000):
        with on_the_lookout(Lookout(None, str)):
            read()
    with record(tape):
        read()
    assert seen(tape)["MODEL"].value == "gpt-4o"

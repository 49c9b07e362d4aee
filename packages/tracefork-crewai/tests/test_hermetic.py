"""In a session CrewAI connects to the provider only, asks no questions, and leaves no files."""

from __future__ import annotations

import os
import pty
import select
import socket
import subprocess
import sys
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest
from crewai.events.listeners.tracing.trace_listener import TraceCollectionListener
from crewai.events.listeners.tracing.utils import should_auto_collect_first_time_traces
from crewai.telemetry import Telemetry
from crewai_core.paths import db_storage_path

import tracefork_crewai
from tracefork_core import Tape
from tracefork_crewai.hermetic import SWITCHES

STORAGE = "CREWAI_STORAGE_DIR"

PROGRAM = """
import os, socket, sys, warnings

warnings.simplefilter("ignore")
reached = set()

def look_up(host, *more, real=socket.getaddrinfo):
    if str(host) != "127.0.0.1":
        reached.add(str(host))
        raise socket.gaierror(-2, "no host is reachable from here")
    return real(host, *more)

socket.getaddrinfo = look_up
import tracefork_core

def tell(line):
    os.write(1, f"\\n{line}\\n".encode())  # One write: event handlers print meanwhile.

def run():
    import crewai.telemetry
    from crewai import LLM, Agent, Crew, Task

    llm = LLM(model="openai/m", base_url=sys.argv[1], api_key="none")
    agent = Agent(role="Writer", goal="help", backstory="You help.", llm=llm)
    task = Task(description="@say Hello.", expected_output="an answer", agent=agent)
    tell(f"REPORTS {crewai.telemetry.Telemetry().ready}")
    tell(f"SAID {Crew(agents=[agent], tasks=[task], verbose=True).kickoff().raw}")

with tracefork_core.record(sys.argv[2]):
    run()
with tracefork_core.replay(sys.argv[2]):
    run()
tell(f"REACHED {sorted(reached)}")
os._exit(0)
"""


@pytest.fixture
def as_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what the tests of this package switch off."""
    for name in (*SWITCHES, STORAGE, "CI", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CREWAI_USER_PAT", "none")  # As for a logged-in user.
    listener: Any = TraceCollectionListener._instance
    if listener is not None:  # An early version keeps events that it could not send.
        listener.batch_manager.current_batch = None


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The host names that were looked up; none resolves."""
    names: set[str] = set()
    real = socket.getaddrinfo

    def look_up(host: Any, *more: Any, **options: Any) -> Any:
        if host in ("127.0.0.1", None):
            return real(host, *more, **options)
        names.add(str(host))
        raise socket.gaierror(-2, "no host is reachable from here")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return names


def test_a_session_uploads_no_trace(
    crew: Any, twice: Any, as_at_home: None, reached: set[str]
) -> None:
    """Neither `tracing=True` nor `verbose=True` connects to another host."""

    def run() -> object:
        return crew(write="Hello.", options_={"tracing": True, "verbose": True}).kickoff().raw

    recorded, replayed = twice(run)
    assert recorded == replayed
    assert reached == set()


def test_the_same_crew_uploads_its_trace_without_a_session(
    crew: Any, as_at_home: None, reached: set[str]
) -> None:
    """The control: the trace goes to CrewAI's own host."""
    options = {"tracing": True, "verbose": True}
    # In a new context: an early version traces only the first crew of a context.
    Context().run(lambda: crew(write="Hello.", options_=options).kickoff())
    assert "app.crewai.com" in reached


def test_a_session_restores_the_switches(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables have their old values or are unset again."""
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "true")
    monkeypatch.delenv("CREWAI_TESTING", raising=False)
    with tracefork_crewai.record(tape):
        assert os.environ["CREWAI_TRACING_ENABLED"] == "false"
        assert os.environ["CREWAI_TESTING"] == "true"
    assert os.environ["CREWAI_TRACING_ENABLED"] == "true"
    assert "CREWAI_TESTING" not in os.environ


def test_only_a_recording_looks_the_users_folder_up(
    tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CrewAI makes the folder where it looks it up; that of a replay is deleted afterwards."""
    folder = tmp_path / "folder"
    monkeypatch.setenv(STORAGE, str(folder))
    with tracefork_crewai.record(tape):
        assert db_storage_path() == str(folder)
    folder.rmdir()
    with tracefork_crewai.replay(tape):
        replayed = Path(db_storage_path())
        assert replayed.exists()
        assert os.environ[STORAGE] == str(folder)
    assert not folder.exists()
    assert not replayed.exists()
    assert db_storage_path() == str(folder)


def test_a_first_run_on_a_terminal_asks_nothing(server: Any, tmp_path: Path) -> None:
    """Nor does it report, with CrewAI imported inside the session; only the recording stores."""
    said = _on_a_terminal(server.url, tmp_path, "run.tape")
    assert said.count("SAID Hello.") == said.count("REPORTS False") == 2
    assert "Execution Traces" not in said
    assert "REACHED []" in said
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left <= {"run.tape", "secret.key", "latest_kickoff_task_outputs.db"}
    with Tape.open(tmp_path / "run.tape") as tape:  # A replay would name it as changed.
        assert not [file.path for file in tape.files if "secret.key" in file.path]


def test_crewai_reports_and_asks_without_a_session(
    as_at_home: None, tape: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control, by CrewAI's own functions: only the switches prevent both."""

    def reports_and_asks() -> tuple[bool, bool]:
        asks: bool = should_auto_collect_first_time_traces()
        return not Telemetry._is_telemetry_disabled(), asks

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert reports_and_asks() == (True, True)
    with tracefork_crewai.record(tape):
        assert reports_and_asks() == (False, False)
    assert reports_and_asks() == (True, True)


def _on_a_terminal(url: str, home: Path, tape: str) -> str:
    """Run the program in a new home, on a terminal without a user; return what it prints."""
    ours, theirs = pty.openpty()
    hidden = (*SWITCHES, STORAGE, "OTEL_SDK_DISABLED", "XDG_DATA_HOME", "CI")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, f"{url}/v1", tape],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=home,
        env={**env, "HOME": str(home)},
    ) as program:
        os.close(theirs)
        said = b""
        while b"REACHED" not in said and select.select([ours], [], [], 60)[0]:
            try:
                said += os.read(ours, 65536)
            except OSError:  # The program has ended.
                break
        program.kill()
    os.close(ours)
    return said.decode()

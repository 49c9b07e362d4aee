"""The command line takes a folder that `crewai run` runs as an agent, without any change to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tracefork_crewai
from tracefork_core import DivergenceError, UsageError
from tracefork_core.cli.agent.agent import Agent
from tracefork_crewai.project import find
from tracefork_testkit import ProviderServer

OURS = "tracefork_crewai.project"
CREW = '[tool.crewai]\ntype = "crew"\n'
FLOW = '[tool.crewai]\ntype = "flow"\n'
SCRIPTS = '[project.scripts]\nrun_crew = "desk.main:run"\nkickoff = "desk.main:kickoff"\n'


@pytest.mark.parametrize(
    ("document", "function"),
    [
        (SCRIPTS + CREW, "desk.main:run"),
        (SCRIPTS + FLOW, "desk.main:kickoff"),
        (SCRIPTS, "desk.main:run"),
        (CREW + 'definition = "crew.jsonc"', f"{OURS}:run_declared_crew"),
        (FLOW + 'definition = "flow.yaml"', f"{OURS}:run_declared_flow"),
        ('[tool.ruff]\n[project.scripts]\nserve = "desk.main:serve"', None),
        (None, None),
    ],
)
def test_find_returns_what_crewai_run_would_run(
    tmp_path: Path, document: str | None, function: str | None
) -> None:
    """The script of a crew or a flow, or a definition without code; None for other projects."""
    if document is not None:
        (tmp_path / "pyproject.toml").write_text(document)
    found = find(tmp_path)
    assert (found and found.function) == function
    if found is not None:
        assert (found.folder, found.paths) == (tmp_path, (tmp_path / "src", tmp_path))


@pytest.mark.parametrize(
    ("document", "said"), [(CREW, "`run_crew`"), (FLOW, "`kickoff`"), ("[tool", "cannot be read")]
)
def test_a_project_with_nothing_to_run_is_refused(tmp_path: Path, document: str, said: str) -> None:
    """The error names the script that `crewai run` would need."""
    (tmp_path / "pyproject.toml").write_text(document)
    with pytest.raises(UsageError, match=said):
        find(tmp_path)


@pytest.mark.parametrize(("definition", "model"), [("", "shell"), ('definition = "c"', "file")])
def test_env_file_overrides_the_shell_for_definitions_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, definition: str, model: str
) -> None:
    """For a script the shell wins over `.env`."""
    monkeypatch.setenv("PYTHON_DOTENV_DISABLED", "0")
    monkeypatch.setenv("MODEL", "shell")
    (tmp_path / "pyproject.toml").write_text(SCRIPTS + CREW + definition)
    (tmp_path / ".env").write_text("MODEL=file\nKEY='a b'\n")
    found = find(tmp_path)
    assert found is not None
    assert {**os.environ, **found.environment}["MODEL"] == model
    assert found.environment["KEY"] == "a b"
    monkeypatch.setenv("PYTHON_DOTENV_DISABLED", "1")
    assert "KEY" not in (find(tmp_path) or found).environment


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> Iterator[Path]:
    """Return a folder for the project `desk`, with variables that hold the server's URL."""
    monkeypatch.chdir(tmp_path)
    variables = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1", "MODEL": "gpt-4o-mini"}
    lines = [f"{name}={value}\n" for name, value in variables.items()]
    (tmp_path / ".env").write_text("".join(lines))
    for name in (*variables, "CREWAI_DMN"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHON_DOTENV_DISABLED", "0")
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(sys, "argv", [])
    yield tmp_path / "desk"
    for name in [name for name in sys.modules if name.partition(".")[0] == "desk"]:
        del sys.modules[name]


@pytest.fixture
def desk(folder: Path) -> Path:
    """Return a project as `crewai create crew desk --classic` makes it."""
    from crewai_cli.create_crew import create_crew

    create_crew("desk", skip_provider=True)
    (folder.parent / ".env").rename(folder / ".env")
    return folder


def run(folder: Path, *words: str) -> object:
    """Run a project as the command line does, but in this process."""
    os.chdir(folder.parent)
    agent = Agent("project", folder.name, words)
    agent.prepare()
    return agent.call()


@pytest.mark.many_processes
def test_a_project_is_recorded_and_replayed(server: ProviderServer, tape: Path, desk: Path) -> None:
    """With `@CrewBase` and its YAML files; replayed by a new process, with the server stopped.

    The control: after a change of one word in a task it diverges, although `main.py` raises an
    exception of its own for any other.
    """
    with tracefork_crewai.record(tape):
        run(desk)
    server.stop()
    assert len(server.requests) == 2
    report = (desk / "report.md").read_text()
    (desk / "report.md").unlink()
    done = subprocess.run(
        [sys.executable, "-m", "tracefork_core.cli.main", "replay", str(tape), "desk"],
        cwd=desk.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "replayed 2 of 2 exchanges" in done.stderr
    assert (desk / "report.md").read_text() == report

    tasks = desk / "src/desk/config/tasks.yaml"
    tasks.write_text(tasks.read_text().replace("thorough", "hasty"))
    with pytest.raises(DivergenceError, match="hasty"), tracefork_crewai.replay(tape):
        run(desk)


CREW_JSON = """{
  "name": "desk",
  "agents": ["clerk"],
  "tasks": [{
    "name": "look", "description": "Look at {topic}.", "expected_output": "a line", "agent": "clerk"
  }]
}"""
CLERK_JSON = """{
  "role": "Clerk", "goal": "help", "backstory": "You help.", "llm": "openai/gpt-4o-mini"
}"""
FLOW_YAML = """
schema: crewai.flow/v1
name: desk
state: {type: dict, default: {topic: nothing}}
methods:
  start:
    start: true
    do: {call: expression, expr: state.topic}
"""


def test_a_crew_without_code_is_recorded_and_replayed(
    server: ProviderServer, tape: Path, folder: Path
) -> None:
    """As `crewai create crew desk` defines it, with inputs from `--inputs`."""
    (folder / "agents").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(CREW + 'definition = "crew.jsonc"')
    (folder / "crew.jsonc").write_text(CREW_JSON)
    (folder / "agents/clerk.jsonc").write_text(CLERK_JSON)
    (folder.parent / ".env").rename(folder / ".env")
    with tracefork_crewai.record(tape):
        recorded = run(folder, "--inputs", '{"topic": "tapes"}')
    server.stop()
    with tracefork_crewai.replay(tape) as replayed:
        assert str(run(folder, "--inputs", '{"topic": "tapes"}')) == str(recorded)
    assert b"Look at tapes." in server.requests[0].body
    assert replayed.exchanges == 1


def test_a_flow_without_code_is_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As `crewai create flow desk --declarative` defines it, with inputs from `--inputs`."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text(FLOW + 'definition = "flow.yaml"')
    (folder / "flow.yaml").write_text(FLOW_YAML)
    run(folder, "--inputs", '{"topic": "tapes"}')
    assert capsys.readouterr().out.splitlines()[-1] == "tapes"

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.main import get_command

from tracefork_core.cli.command_table import SUMMARIES
from tracefork_core.cli.main import main

from .conftest import Shell

REFERENCE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "cli.md"
HEAVY = {"asyncio", "httpx", "importlib.metadata", "msgspec", "openai", "pydantic"}
HEAVY |= {"rich", "sqlite3", "time_machine", "typer", "tracefork_core.run", "tracefork_core.tape"}
RUNNING = {"asyncio", "tracefork_core.adapters", "tracefork_core.run.fork"}
RUNNING |= {"tracefork_core.session.session"}


def test_the_overview_loads_nothing_heavy(shell: Shell) -> None:
    """`tracefork --help` imports no command and no library."""
    code = (
        "import sys, json; from tracefork_core.cli.main import main; code = main(['--help']);"
        "print(json.dumps(sorted(sys.modules)))"
    )
    *overview, modules = shell.python("-c", code).out.splitlines()
    loaded = set(json.loads(modules))
    assert "Usage: tracefork COMMAND [OPTIONS] [ARGS]" in overview
    assert loaded & HEAVY == set()
    assert {f"tracefork_core.cli.commands.{verb}" for verb in SUMMARIES} & loaded == set()


def test_a_command_loads_its_libraries(shell: Shell) -> None:
    """The control: the same probe sees typer in the help of a command."""
    code = (
        "import sys; from tracefork_core.cli.main import main; main(['ls', '--help']);"
        "print('typer' in sys.modules)"
    )
    assert shell.python("-c", code).out.splitlines()[-1] == "True"


def test_looking_at_a_tape_loads_nothing_that_runs_agents(taped: Shell) -> None:
    """`tracefork show` only reads, and loading a session takes longer than all that it does."""
    for words in (["show", "support.tape"], ["show", "support.tape", "1"], ["ls"]):
        assert _loaded_by(taped, words) & RUNNING == set()


def test_recording_loads_nothing_that_forks(taped: Shell) -> None:
    """`record` loads a session, so the check above can fail, but no fork and no project."""
    loaded = _loaded_by(taped, ["record", "-o", "new.tape", "agent.py"])
    assert loaded & RUNNING == {"asyncio", "tracefork_core.session.session"}


def _loaded_by(shell: Shell, words: list[str]) -> set[str]:
    code = (
        f"import sys, json; from tracefork_core.cli.main import main; main({words});"
        "print(json.dumps(sorted(sys.modules)))"
    )
    return set(json.loads(shell.python("-c", code).out.splitlines()[-1]))


def test_the_overview_fits_the_narrowest_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """No line is wider than 80 columns, and every command is in it."""
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    assert max(len(line) for line in overview.splitlines()) <= 80
    assert all(f"  {verb:<11}{summary}" in overview for verb, summary in SUMMARIES.items())


@pytest.mark.parametrize("verb", SUMMARIES)
def test_every_command_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command describes itself and all its options."""
    from importlib import import_module

    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    command = get_command(import_module(f"tracefork_core.cli.commands.{verb}").app)
    assert f"Usage: tracefork {verb}" in text
    assert command.help
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{verb} {parameter.name} has no help"
    for name, inner in getattr(command, "commands", {}).items():
        assert main([verb, name, "--help"]) == 0
        text = capsys.readouterr().out
        assert inner.help
        assert all(getattr(parameter, "help", None) for parameter in inner.params), name
    assert "--json" in text


@pytest.mark.parametrize("verb", SUMMARIES)
def test_every_command_is_in_the_reference(verb: str) -> None:
    """Each section of docs/reference/cli.md names all options of its command."""
    from importlib import import_module

    sections = REFERENCE.read_text().split("\n## ")
    (section,) = (text for text in sections if text.startswith(f"`tracefork {verb}`\n"))
    command = get_command(import_module(f"tracefork_core.cli.commands.{verb}").app)
    inner = getattr(command, "commands", {}).values()
    options = [option for one in (command, *inner) for option in one.params]
    names = [name for option in options for name in option.opts if name.startswith("-")]
    assert [name for name in names if f"`{name}" not in section] == []


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """`tracefork --version` prints the version of the package."""
    from tracefork_core import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tracefork {__version__}\n"

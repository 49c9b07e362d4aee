"""A folder that `crewai run` runs, as the agent of `tracefork record FOLDER`.

The same function, folder and variables, in this process: `crewai run` would start another one with
`uv run`, in the environment of the project, which is where tracefork has to be installed as well.
Nothing in the folder is changed: `crewai run` would write an id into its `pyproject.toml`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from tracefork_core import UsageError
from tracefork_core.adapters import Project

_SCRIPTS = {"crew": "run_crew", "flow": "kickoff"}
_DECLARED = {"crew": "run_declared_crew", "flow": "run_declared_flow"}
# What `crewai run` does where nobody sits at a terminal: a plain run, without its own screen.
_PLAIN = {"CREWAI_DMN": "true"}


def find(folder: Path) -> Project | None:
    """Return what `crewai run` would run in a folder; None where it is no project of CrewAI.

    Raises:
        UsageError: `pyproject.toml` cannot be read, or names nothing to run.
    """
    file = folder / "pyproject.toml"
    if not file.is_file():
        return None
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"tracefork: {file} cannot be read: {error}") from error
    scripts = _table(document, "project", "scripts")
    settings = _table(document, "tool", "crewai")
    if not settings and _SCRIPTS["crew"] not in scripts:
        return None
    kind = "flow" if settings.get("type") == "flow" else "crew"
    is_declared = bool(settings.get("definition"))
    function = f"{__name__}:{_DECLARED[kind]}" if is_declared else scripts.get(_SCRIPTS[kind])
    if not isinstance(function, str):
        raise UsageError(
            f"tracefork: {file} says neither a script `{_SCRIPTS[kind]}` under [project.scripts], "
            f"which `crewai run` runs for a {kind}, nor a definition under [tool.crewai]."
        )
    # A definition's variables win over those of the shell, a script's do not, as with CrewAI.
    environment = _variables(folder / ".env", override=is_declared)
    return Project(
        function,
        folder,
        paths=(folder / "src", folder),
        environment={**environment, **_PLAIN} if is_declared else environment,
    )


def run_declared_crew() -> object:
    """Run the crew that the project in the current folder defines without code."""
    running = import_module("crewai_cli.run_crew")
    crew: object = running._run_json_crew(inputs=_inputs())  # noqa: SLF001 - without it uv is run
    return crew


def run_declared_flow() -> object:
    """Run the flow that the project in the current folder defines without code."""
    running = import_module("crewai_cli.run_declarative_flow")
    definition = running.configured_project_declarative_flow()
    flow: object = running.run_declarative_flow(definition, inputs=_inputs())
    return flow


def _inputs() -> str | None:
    """Return what was typed as `--inputs`, which `crewai run` takes for what is defined only."""
    parser = argparse.ArgumentParser(prog="tracefork record FOLDER --", add_help=False)
    parser.add_argument("--inputs", metavar="JSON")
    inputs: str | None = parser.parse_args(sys.argv[1:]).inputs
    return inputs


def _table(document: object, *names: str) -> Mapping[str, object]:
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def _variables(file: Path, *, override: bool) -> dict[str, str]:
    """Return what a project's `.env` sets here."""
    is_off = os.environ.get("PYTHON_DOTENV_DISABLED", "").casefold() in {"1", "true", "t", "yes"}
    if is_off or not file.is_file():
        return {}
    dotenv = import_module("dotenv.main")  # CrewAI brings it, and reads the file with it.
    found: dict[str, str | None] = dotenv.DotEnv(file, encoding="utf-8", override=override).dict()
    return {
        name: value
        for name, value in found.items()
        if value is not None and (override or name not in os.environ)
    }

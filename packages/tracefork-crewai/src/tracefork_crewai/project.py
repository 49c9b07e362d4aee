"""Run the folder that `crewai run` runs, as the agent of `tracefork record FOLDER`.

It calls the same function, in the same folder, with the same variables, but in this process.
`crewai run` would start another process with `uv run`, in the project's environment, where
tracefork would have to be installed too. Nothing in the folder is changed: `crewai run` would write
an id into its `pyproject.toml`.
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
# As `crewai run` does without a terminal: a plain run, without its own screen.
_PLAIN = {"CREWAI_DMN": "true"}


def find(folder: Path) -> Project | None:
    """Return what `crewai run` would run in a folder; None if it is not a CrewAI project.

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
            f"tracefork: {file} does not say what to run. For a {kind}, `crewai run` needs a "
            f"script `{_SCRIPTS[kind]}` under [project.scripts], or a definition under "
            "[tool.crewai]."
        )
    # As with CrewAI, `.env` overrides the shell for a definition, but not for a script.
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
    crew: object = running._run_json_crew(inputs=_inputs())  # noqa: SLF001 - the public function runs uv
    return crew


def run_declared_flow() -> object:
    """Run the flow that the project in the current folder defines without code."""
    running = import_module("crewai_cli.run_declarative_flow")
    definition = running.configured_project_declarative_flow()
    flow: object = running.run_declarative_flow(definition, inputs=_inputs())
    return flow


def _inputs() -> str | None:
    """Return the argument of `--inputs`, which `crewai run` takes for definitions only."""
    parser = argparse.ArgumentParser(prog="tracefork record FOLDER --", add_help=False)
    parser.add_argument("--inputs", metavar="JSON")
    inputs: str | None = parser.parse_args(sys.argv[1:]).inputs
    return inputs


def _table(document: object, *names: str) -> Mapping[str, object]:
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def _variables(file: Path, *, override: bool) -> dict[str, str]:
    """Return the variables that a project's `.env` sets here."""
    is_off = os.environ.get("PYTHON_DOTENV_DISABLED", "").casefold() in {"1", "true", "t", "yes"}
    if is_off or not file.is_file():
        return {}
    dotenv = import_module("dotenv.main")  # CrewAI depends on it and reads the file with it.
    values: dict[str, str | None] = dotenv.DotEnv(file, encoding="utf-8", override=override).dict()
    return {
        name: value
        for name, value in values.items()
        if value is not None and (override or name not in os.environ)
    }

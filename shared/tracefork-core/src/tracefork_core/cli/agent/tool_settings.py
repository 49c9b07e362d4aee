"""The tools that a command line and the agent's pyproject.toml name.

    [tool.tracefork]
    tools = ["agent:charge_card=write", "agent:Bank.balance=read"]
    tools_of = ["agent:TOOLS"]

Only the command line reads the file. A program that calls `record` names its tools there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracefork_core.cli.agent.agent import Agent
from tracefork_core.errors import UsageError

_FILE = "pyproject.toml"


def tools_for(
    agent: Agent, tools: Sequence[str] | None, tables: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Return the names of tools and of tables of tools: those typed, then those in the file.

    Raises:
        UsageError: the file is not TOML, or an entry is not a list of names.
    """
    typed, typed_tables = list(tools or ()), list(tables or ())
    path = _nearest(agent)
    if path is None:
        return typed, typed_tables
    settings = _settings(path)
    return (
        [*typed, *_names(path, settings, "tools")],
        [*typed_tables, *_names(path, settings, "tools_of")],
    )


def _nearest(agent: Agent) -> Path | None:
    """Return the nearest pyproject.toml upward from the folder of an agent."""
    here = Path.cwd()
    if agent.form == "script":
        here = Path(agent.target).resolve().parent
    elif agent.form == "project":
        here = Path(agent.target).resolve()
    candidates = [folder / _FILE for folder in (here, *here.parents)]
    return next((path for path in candidates if path.is_file()), None)


def _settings(path: Path) -> Mapping[str, object]:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"tracefork: cannot read {path}: {error}.") from error
    tool = document.get("tool")
    settings = tool.get("tracefork") if isinstance(tool, dict) else None
    return settings if isinstance(settings, dict) else {}


def _names(path: Path, settings: Mapping[str, object], key: str) -> list[str]:
    names = settings.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(
            f"tracefork: {key} in [tool.tracefork] of {path} must be a list of names, like "
            f'["agent:charge_card=write"] (got {names!r:.60}).'
        )
    return names

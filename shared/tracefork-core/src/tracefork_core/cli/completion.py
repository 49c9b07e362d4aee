"""Complete command lines in a shell: `tracefork completion bash` prints what the shell needs.

The shell calls `tracefork` with a variable in the environment at each press of Tab. Only the module
of the command that is being typed is loaded then.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import typer
from typer._completion_classes import completion_init
from typer.completion import shell_complete
from typer.core import TyperGroup

from tracefork_core.cli.command_table import SUMMARIES
from tracefork_core.errors import UsageError

VARIABLE = "_TRACEFORK_COMPLETE"
"""The variable in which a shell says what it wants."""
SHELLS = ("bash", "zsh", "fish")


def script(shell: str) -> str:
    """Return what a shell needs to complete `tracefork`.

    Raises:
        UsageError: there is no such shell.
    """
    from typer._completion_shared import get_completion_script

    if shell not in SHELLS:
        raise UsageError(
            f"tracefork: completion knows {', '.join(SHELLS)} (got {shell!r}). Type: tracefork "
            "completion bash"
        )
    return get_completion_script(prog_name="tracefork", complete_var=VARIABLE, shell=shell)


def complete() -> int:
    """Answer the shell, and return the exit code."""
    completion_init()
    commands = _Commands(name="tracefork")
    return shell_complete(commands, {}, "tracefork", VARIABLE, os.environ[VARIABLE])


class _Commands(TyperGroup):
    """The commands, each loaded when its options are asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(SUMMARIES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in SUMMARIES:
            return None
        typed = os.environ.get("COMP_WORDS", os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()
        if cmd_name not in typed[1:2]:
            return typer.core.TyperCommand(cmd_name, short_help=SUMMARIES[cmd_name])
        return typer.main.get_command(import_module(f"tracefork_core.cli.commands.{cmd_name}").app)

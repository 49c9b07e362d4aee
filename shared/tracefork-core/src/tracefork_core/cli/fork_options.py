"""Options of the commands that fork: the fork point, what changes, and what live calls may do."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli.options import Mask
from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.session.interventions import Edit
    from tracefork_core.session.side_effects import Writes

At = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="N|STEP",
        help="Fork point: the number of an exchange, or the name of a step.",
    ),
]
OracleWords = Annotated[
    str,
    typer.Option(
        "--oracle",
        metavar="WORDS",
        help="What a good run is: exit, regex:…, equals:…, json:/p=v, judge:FILE, PKG.MOD:FN.",
    ),
]


@dataclass(frozen=True, slots=True)
class QuestionEdit:
    """How the question at a fork point is changed."""

    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="Ask the question of another model."),
    ] = None
    temperature: Annotated[
        float | None,
        typer.Option("--temperature", metavar="T", help="Ask the question at another temperature."),
    ] = None
    system: Annotated[
        str | None,
        typer.Option("--system", metavar="TEXT", help="Replace the system prompt of the question."),
    ] = None
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt", metavar="TEXT", help="Replace the last user message of the question."
        ),
    ] = None

    def edit(self) -> Edit | None:
        """Return the change of the question; None if it stays."""
        return _edit(self.model, self.temperature, self.system, self.prompt)


AllowWrites = Annotated[
    bool, typer.Option("--allow-writes", help="Repeat calls with side effects.")
]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What happens to live calls with side effects."""

    allow_writes: AllowWrites = False
    stub_writes: Annotated[
        bool,
        typer.Option(
            "--stub-writes",
            help="Return the recorded result of calls with side effects instead of making them.",
        ),
    ] = False

    reads: Annotated[
        list[str] | None,
        typer.Option(
            "--reads", metavar="TOOL", help="A tool that only reads, so that it may run again."
        ),
    ] = None

    @property
    def words(self) -> str:
        """The options as they were typed, for a command that is to do the same; with a space."""
        given = ["--allow-writes"] if self.allow_writes else []
        given += ["--stub-writes"] if self.stub_writes else []
        given += [word for tool in self.reads or [] for word in ("--reads", tool)]
        return "".join(f" {shlex.quote(word)}" for word in given)

    def writes(self) -> Writes:
        """Return what happens to live calls with side effects.

        Raises:
            UsageError: both options were given.
        """
        if self.allow_writes and self.stub_writes:
            raise UsageError(
                "tracefork: --allow-writes and --stub-writes exclude each other. Give one of them."
            )
        return "allow" if self.allow_writes else "stub" if self.stub_writes else "refuse"


@dataclass(frozen=True, slots=True)
class BranchOptions(WriteOptions):
    """The tape that records what runs, and what happens to its live calls."""

    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="TAPE", help="The branch to write."),
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing tape.")] = (
        False
    )
    mask: Mask = None


@dataclass(frozen=True, slots=True)
class TailOptions(WriteOptions):
    """How the live part of each fork runs, for blame and bisect."""

    tail_model: Annotated[
        str | None,
        typer.Option(
            "--tail-model", metavar="MODEL", help="Send every live call to another model."
        ),
    ] = None
    tail_temperature: Annotated[
        float | None,
        typer.Option(
            "--tail-temperature", metavar="T", help="Make every live call at another temperature."
        ),
    ] = None
    mask: Mask = None

    def tail(self) -> Edit | None:
        """Return the change of every live question; None if they stay."""
        return _edit(self.tail_model, self.tail_temperature)


def _edit(
    model: str | None,
    temperature: float | None,
    system: str | None = None,
    prompt: str | None = None,
) -> Edit | None:
    from tracefork_core.session.interventions import Edit

    edit = Edit(model=model, temperature=temperature, system=system, prompt=prompt)
    return None if edit == Edit() else edit

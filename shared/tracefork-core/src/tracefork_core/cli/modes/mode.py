"""The modes of a replay: what each one runs, and what it cannot prove."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tracefork_core.errors import UsageError


class Mode(StrEnum):
    """What a replay runs."""

    STRICT = "strict"
    HYBRID = "hybrid"
    DRY_RUN = "dry-run"


CANNOT_PROVE = {
    Mode.STRICT: "no tool ran, so it is not known whether a check would end the same way today",
    Mode.HYBRID: (
        "only verifiers ran, on the files that are here now; whether these are the files that the "
        "recorded run left is not known"
    ),
    Mode.DRY_RUN: (
        "nothing ran, so it is not known whether the agent still makes these calls, or whether a "
        "check would end the same way"
    ),
}
"""What a user must not conclude from a good result."""


@dataclass(frozen=True, slots=True)
class ModeOptions:
    """The mode of a replay, and what a hybrid one runs again."""

    mode: Annotated[
        Mode | None,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="strict: no tool runs. hybrid: verifiers run again. dry-run: nothing runs.",
        ),
    ] = None
    verifier: Annotated[
        list[str] | None,
        typer.Option("--verifier", metavar="TOOL", help="With hybrid: this tool is a verifier."),
    ] = None
    allow_write: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-write", metavar="TOOL", help="Let this tool run again, although it may write."
        ),
    ] = None
    runs: Annotated[
        int,
        typer.Option("--runs", min=1, metavar="N", help="With hybrid: run each verifier N times."),
    ] = 1
    container: Annotated[
        str | None,
        typer.Option(
            "--container", metavar="COMMAND", help="With hybrid: run verifiers under this command."
        ),
    ] = None
    unpinned: Annotated[
        bool,
        typer.Option(
            "--unpinned", help="With hybrid: accept another Python or lockfile than recorded."
        ),
    ] = False
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", metavar="DIR", help="Write the evidence of the run to a folder."),
    ] = None

    @property
    def chosen(self) -> Mode:
        """The mode; strict unless another one was asked for."""
        return self.mode or Mode.STRICT

    def check(self) -> None:
        """Refuse options of another mode.

        Raises:
            UsageError: an option was given that the mode does not have.
        """
        hybrid = {
            "--verifier": self.verifier,
            "--runs": self.runs > 1,
            "--container": self.container,
            "--unpinned": self.unpinned,
        }
        if self.allow_write and self.mode in (None, Mode.DRY_RUN):
            raise UsageError("tracefork: --allow-write needs --mode strict or hybrid.")
        given = next((name for name, value in hybrid.items() if value), None)
        if given and self.chosen != Mode.HYBRID:
            raise UsageError(f"tracefork: {given} is an option of --mode hybrid.")

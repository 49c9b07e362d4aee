"""Options and arguments that several verbs share, each spelled once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.session.forking import Writes


class AgentCommand(TyperCommand):
    """A verb whose usage line shows where the agent and its arguments stand."""

    usage = "[OPTIONS] SCRIPT.py [-- ARGS]"

    def collect_usage_pieces(self, ctx: object) -> list[str]:
        """Return the words of the usage line."""
        return [self.usage]


class TapeAndAgent(AgentCommand):
    """A verb that takes a tape, and an agent where none is known."""

    usage = "[OPTIONS] TAPE [SCRIPT.py [-- ARGS]]"


AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout; notes go to stderr.")
]
TapeName = Annotated[
    str,
    typer.Argument(
        metavar="TAPE", help="A path, `last`, or the name of a tape recorded on this machine."
    ),
]
Command = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SCRIPT.py",
        help="The agent, or a project's folder; its own arguments follow `--`.",
    ),
]
Module = Annotated[
    str | None, typer.Option("-m", "--module", metavar="MODULE", help="Run a module, as python -m.")
]
Function = Annotated[
    str | None,
    typer.Option("--agent", metavar="PKG.MOD:FN", help="Call a function, async ones too."),
]
Match = Annotated[
    list[str] | None,
    typer.Option("--match", metavar="NAME", help="Widen what counts as equal: json."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="/POINTER", help="Do not compare this place of JSON bodies."),
]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="HOST", help="Let connections to HOST or HOST:PORT through."),
]
Mask = Annotated[
    list[str] | None,
    typer.Option(
        "--mask", metavar="NAME|re:PATTERN", help="Mask a variable's value, or a pattern."
    ),
]
NoClock = Annotated[bool, typer.Option("--no-clock", help="Leave the wall clock alone.")]
Boundary = Annotated[
    str | None,
    typer.Option(
        "--boundary", metavar="warn|raise|note", help="Name the lines that draw past the tape."
    ),
]
Speed = Annotated[
    float | None,
    typer.Option("--speed", metavar="X", help="Keep the recorded pace, X times as fast."),
]
OrderOf = Annotated[
    str | None,
    typer.Option(
        "--order", metavar="SEED|N,N,…", help="Answer what overlaps in another order, to see races."
    ),
]
At = Annotated[
    str,
    typer.Option("--at", metavar="N|STEP", help="The fork point: an exchange, or a step's name."),
]
OtherModel = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="Ask another model there.")
]
OtherTemperature = Annotated[
    float | None, typer.Option("--temperature", metavar="T", help="Ask at another temperature.")
]
OtherSystem = Annotated[
    str | None, typer.Option("--system", metavar="TEXT", help="Ask with another system prompt.")
]
OtherPrompt = Annotated[
    str | None, typer.Option("--prompt", metavar="TEXT", help="Ask this instead.")
]
OracleWords = Annotated[
    str,
    typer.Option(
        "--oracle",
        metavar="WORDS",
        help="What is good: exit, regex:…, equals:…, json:/p=v, judge:FILE, PKG.MOD:FN.",
    ),
]
TailModel = Annotated[
    str | None,
    typer.Option("--tail-model", metavar="MODEL", help="Ask another model whatever is live."),
]
TailTemperature = Annotated[
    float | None,
    typer.Option("--tail-temperature", metavar="T", help="Ask that at another temperature."),
]
AllowWrites = Annotated[
    bool, typer.Option("--allow-writes", help="Do again what may change the world.")
]
StubWrites = Annotated[
    bool, typer.Option("--stub-writes", help="Answer that as recorded, where something was.")
]
NoEntropy = Annotated[
    bool, typer.Option("--no-entropy", help="Leave what is drawn at random alone.")
]
NoSubprocess = Annotated[
    bool, typer.Option("--no-subprocess", help="Refuse to start other programs.")
]


def writes(*, allow: bool, stub: bool) -> Writes:
    """Return what becomes of writes.

    Raises:
        UsageError: both were asked for.
    """
    if allow and stub:
        raise UsageError("tracefork: --allow-writes or --stub-writes, not both.")
    return "allow" if allow else "stub" if stub else "refuse"


def matchers(match: list[str] | None, ignore: list[str] | None) -> list[str]:
    """Return the matchers that --match and --ignore ask for."""
    return [*(match or []), *(f"ignore:{pointer}" for pointer in ignore or [])]


def replay_switches(
    matchers: Sequence[str],
    allow: Sequence[str] | None,
    mask: Sequence[str] | None,
    *,
    clock: bool,
    entropy: bool,
    subprocesses: bool,
) -> list[str]:
    """Return the options that have `tracefork replay` do the same in another process."""
    words = [
        f"--ignore={name.removeprefix('ignore:')}" if name[:7] == "ignore:" else f"--match={name}"
        for name in matchers
    ]
    words += [f"--allow={host}" for host in allow or ()]
    words += [f"--mask={entry}" for entry in mask or ()]
    words += ["--no-clock"] * (not clock) + ["--no-entropy"] * (not entropy)
    return words + ["--no-subprocess"] * (not subprocesses)


def order_of(text: str | None) -> int | list[int] | None:
    """Return the order that --order asks for: a seed, or exchanges one after another.

    Raises:
        UsageError: it is neither.
    """
    if text is None:
        return None
    listed, comma = text.strip().removesuffix(","), "," in text
    if comma and not listed:
        return []
    takes = "--order takes a seed (7) or numbers of exchanges (0,2,1)"
    found = numbers(listed, f"{takes}, not {text!r}")
    return found if comma else found[0]


def numbers(text: str, otherwise: str) -> list[int]:
    """Return the numbers of a list with commas between.

    Raises:
        UsageError: it is none; `otherwise` says what it should be.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and word.isascii() for word in words):
        raise UsageError(f"tracefork: {otherwise}.")
    return [int(word) for word in words]


def given(after: object) -> list[str]:
    """Return the words behind `--`, which the command line hands over apart."""
    return [str(word) for word in after] if isinstance(after, list) else []

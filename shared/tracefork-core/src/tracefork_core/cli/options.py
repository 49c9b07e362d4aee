"""Options and arguments that several commands share, each declared once.

Typer reads a command's options from the signature of its function, and replaying an agent takes a
dozen of them. So they come in groups: a dataclass whose fields are options. A command that names a
group as the type of a parameter and is decorated with `grouped` has all of its options.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.cli.agent.agent import Agent


class AgentCommand(TyperCommand):
    """A command whose usage line shows the agent and its arguments."""

    usage = "[OPTIONS] SCRIPT.py [-- ARGS]"

    def collect_usage_pieces(self, ctx: object) -> list[str]:
        """Return the words of the usage line."""
        return [self.usage]


class AgentInFolder(AgentCommand):
    """A command that records an agent into a folder, or all that the folder names."""

    usage = "[OPTIONS] [SCRIPT.py [-- ARGS]]"


class TapeAndAgent(AgentCommand):
    """A command that takes a tape, and optionally an agent."""

    usage = "[OPTIONS] TAPE [SCRIPT.py [-- ARGS]]"


def grouped(command: Callable[..., int]) -> Callable[..., int]:
    """Replace each parameter of a command that is a dataclass by the fields of that dataclass.

    Typer sees one parameter for each field; the command gets the dataclass, filled in.
    """
    types = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {
        name: type_
        for name, type_ in types.items()
        if isinstance(type_, type) and is_dataclass(type_)
    }

    @wraps(command)
    def with_groups(**given: object) -> int:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        return command(**given)

    parameters = []
    for parameter in signature(command).parameters.values():
        if parameter.name in groups:
            parameters += _parameters_of(groups[parameter.name])
        else:
            parameters.append(_keyword(parameter.name, types[parameter.name], parameter.default))
    with_groups.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return with_groups


def _parameters_of(group: type[Any]) -> list[Parameter]:
    types = get_type_hints(group, include_extras=True)
    return [_keyword(field.name, types[field.name], field.default) for field in fields(group)]


def _keyword(name: str, annotation: object, default: object) -> Parameter:
    # Keywords alone may have defaults in any order.
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout, and notes on stderr.")
]
TapeName = Annotated[
    str,
    typer.Argument(
        metavar="TAPE", help="A path, `last`, or the name of a tape recorded on this machine."
    ),
]
Mask = Annotated[
    list[str] | None,
    typer.Option(
        "--mask",
        metavar="NAME|re:PATTERN",
        help="Mask the value of an environment variable, or a pattern.",
    ),
]
TapeMode = Annotated[
    str,
    typer.Option(
        "--mode", metavar="MODE", help="What the tape keeps: safe, metadata, sealed or raw."
    ),
]
Boundary = Annotated[
    str | None,
    typer.Option(
        "--boundary",
        metavar="warn|raise|note",
        help="Report lines of the agent that draw from sources the tape does not hold.",
    ),
]


@dataclass(frozen=True, slots=True)
class HtmlOptions:
    """The page that a command writes."""

    html: Annotated[
        bool, typer.Option("--html", help="Write it as an HTML page, as `tracefork report` does.")
    ] = False
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="With --html: the page to write."),
    ] = None
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="With --html: replace the page if it exists.")
    ] = False

    def target(self, stem: str) -> Path | None:
        """Return the file to write, by default `stem`.html; None if no page is asked for.

        Raises:
            UsageError: the file exists, or an option lacks --html.
        """
        if not self.html:
            if self.output is not None or self.overwrite:
                name = "--overwrite" if self.output is None else "-o"
                raise UsageError(f"tracefork: {name} is for the page. Add --html to write one.")
            return None
        from tracefork_core.cli.report import page_file

        return page_file.free(self.output, stem, overwrite=self.overwrite)


@dataclass(frozen=True, slots=True)
class AgentWords:
    """The agent as typed on the command line: a script or folder, a module, or a function."""

    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT.py",
            help="The agent: a script, or a project folder; its own arguments follow `--`.",
        ),
    ] = None
    module: Annotated[
        str | None,
        typer.Option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m` does."),
    ] = None
    function: Annotated[
        str | None,
        typer.Option("--agent", metavar="PKG.MOD:FN", help="Call a function, sync or async."),
    ] = None

    @property
    def given(self) -> bool:
        """Whether an agent was typed."""
        return bool(self.command or self.module or self.function)

    def read(self, context: typer.Context) -> Agent | None:
        """Return the agent that was typed, or None if there was none."""
        from tracefork_core.cli.agent.agent import read_agent

        return read_agent(self.command or [], behind_dashes(context), self.module, self.function)

    def read_for(self, tape: Path, context: typer.Context) -> tuple[Agent, Path]:
        """Return the agent to run against a tape, and the folder to run it in.

        Without a typed agent, this is the command that recorded the tape on this machine.
        """
        from tracefork_core.cli.agent.recorded_command import agent_for

        after = behind_dashes(context)
        words, command = self.command or [], context.command_path
        return agent_for(tape, words, after, self.module, self.function, command)


@dataclass(frozen=True, slots=True)
class AgentOrApp(AgentWords):
    """The agent as typed, or the app of a service that handles the request on the tape."""

    app: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="PKG.MOD:APP",
            help="Let the app of a service handle the recorded request (ASGI, WSGI, Celery).",
        ),
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="NAME:VALUE",
            help="With --app: a header of the request whose value is not on the tape.",
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether an agent or an app was typed."""
        return bool(self.app or AgentWords.given.fget(self))  # type: ignore[attr-defined]

    def read_for(self, tape: Path, context: typer.Context) -> tuple[Agent, Path]:
        """Return the agent or app to run against a tape, and the folder to run it in."""
        if self.app is None:
            if self.header:
                raise UsageError("tracefork: --header is for a request of a service: give --app.")
            return AgentWords.read_for(self, tape, context)
        from tracefork_core.cli.agent.agent import Agent
        from tracefork_core.cli.agent.app import check_headers, served_on

        if AgentWords.given.fget(self) or behind_dashes(context):  # type: ignore[attr-defined]
            raise UsageError("tracefork: --app takes no agent and no arguments beside it.")
        headers = self.header or []
        check_headers(headers)
        served_on(tape)
        return Agent("app", self.app, (str(tape), *headers)), Path.cwd()


@dataclass(frozen=True, slots=True)
class Switches:
    """Which parts of the process stay unpatched while the agent runs."""

    no_clock: Annotated[
        bool,
        typer.Option("--no-clock", help="Leave the wall clock real: do not record or replay it."),
    ] = False
    no_entropy: Annotated[
        bool,
        typer.Option(
            "--no-entropy", help="Leave randomness and ids real: do not record or replay them."
        ),
    ] = False
    no_subprocess: Annotated[
        bool, typer.Option("--no-subprocess", help="Refuse to start subprocesses.")
    ] = False


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """The functions of the agent whose calls are recorded, without an edit of its code."""

    tool: Annotated[
        list[str] | None,
        typer.Option(
            "--tool",
            metavar="MODULE:NAME[=read|write|pure]",
            help="Record calls of this function: its result is replayed, and it does not run.",
        ),
    ] = None
    tool_of: Annotated[
        list[str] | None,
        typer.Option(
            "--tool-of",
            metavar="MODULE:TABLE",
            help="The same for each function in a list, a set or a dict.",
        ),
    ] = None

    @property
    def words(self) -> list[str]:
        """The same options as words of a command line, for a recording in another process."""
        return [f"--tool={name}" for name in self.tool or ()] + [
            f"--tool-of={table}" for table in self.tool_of or ()
        ]


Match = Annotated[
    list[str] | None,
    typer.Option(
        "--match",
        metavar="NAME",
        help="Relax the comparison: `json` ignores key order and white space.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="/POINTER",
        help="Skip the value at this JSON pointer when comparing request bodies.",
    ),
]


@dataclass(frozen=True, slots=True)
class ReplayOptions(Switches):
    """How a replay compares requests, and which parts of the process stay unpatched."""

    match: Match = None
    ignore: Ignore = None
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="HOST", help="Allow connections to HOST, or to HOST:PORT."),
    ] = None
    mask: Mask = None

    @property
    def matchers(self) -> list[str]:
        """The matchers that --match and --ignore name, as `replay` takes them."""
        return matchers(self.match, self.ignore)

    @property
    def words(self) -> list[str]:
        """The same options as words of a command line, for a replay in another process."""
        words = [f"--match={name}" for name in self.match or ()]
        words += [f"--ignore={pointer}" for pointer in self.ignore or ()]
        words += [f"--allow={host}" for host in self.allow or ()]
        words += [f"--mask={entry}" for entry in self.mask or ()]
        words += ["--no-clock"] * self.no_clock + ["--no-entropy"] * self.no_entropy
        return words + ["--no-subprocess"] * self.no_subprocess


Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Also compare the thread or task of each exchange, and the order."
    ),
]


def matchers(match: list[str] | None, ignore: list[str] | None) -> list[str]:
    """Return the matchers that --match and --ignore name, as `replay` takes them."""
    return [*(match or []), *(f"ignore:{pointer}" for pointer in ignore or [])]


def order_of(text: str | None) -> int | list[int] | None:
    """Return the order that --order names: a seed, or the numbers of exchanges.

    Raises:
        UsageError: the text is neither.
    """
    if text is None:
        return None
    listed, comma = text.strip().removesuffix(","), "," in text
    if comma and not listed:
        return []
    order = numbers(listed, "--order must be a seed (7) or a list of exchanges (0,2,1)", text)
    return order if comma else order[0]


def numbers(text: str, expected: str, typed: str | None = None) -> list[int]:
    """Return the whole numbers in a comma-separated list.

    Args:
        text: the list.
        expected: the beginning of the error: "--order must be …".
        typed: what the user typed, if that is not the same as the list.

    Raises:
        UsageError: the text is not such a list.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and word.isascii() for word in words):
        raise UsageError(f"tracefork: {expected} (got {typed or text!r}).")
    return [int(word) for word in words]


def behind_dashes(context: typer.Context) -> list[str]:
    """Return the words behind `--`, which `main` cuts off and passes as the context's object."""
    return [str(word) for word in context.obj] if isinstance(context.obj, list) else []

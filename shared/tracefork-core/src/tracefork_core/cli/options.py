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
    from tracefork_core.session.forking import Writes
    from tracefork_core.session.interventions import Edit


class AgentCommand(TyperCommand):
    """A command whose usage line shows the agent and its arguments."""

    usage = "[OPTIONS] SCRIPT.py [-- ARGS]"

    def collect_usage_pieces(self, ctx: object) -> list[str]:
        """Return the words of the usage line."""
        return [self.usage]


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
    bool, typer.Option("--json", help="Print one JSON document on stdout; notes go to stderr.")
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
        "--mask", metavar="NAME|re:PATTERN", help="Mask a variable's value, or a pattern."
    ),
]
Boundary = Annotated[
    str | None,
    typer.Option(
        "--boundary", metavar="warn|raise|note", help="Name the lines that draw past the tape."
    ),
]
At = Annotated[
    str,
    typer.Option("--at", metavar="N|STEP", help="The fork point: an exchange, or a step's name."),
]
OracleWords = Annotated[
    str,
    typer.Option(
        "--oracle",
        metavar="WORDS",
        help="What is good: exit, regex:…, equals:…, json:/p=v, judge:FILE, PKG.MOD:FN.",
    ),
]


@dataclass(frozen=True, slots=True)
class AgentWords:
    """The agent as it was typed, if it was: a script or folder, a module, or a function."""

    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT.py",
            help="The agent, or a project's folder; its own arguments follow `--`.",
        ),
    ] = None
    module: Annotated[
        str | None,
        typer.Option("-m", "--module", metavar="MODULE", help="Run a module, as python -m."),
    ] = None
    function: Annotated[
        str | None,
        typer.Option("--agent", metavar="PKG.MOD:FN", help="Call a function, async ones too."),
    ] = None

    @property
    def given(self) -> bool:
        """Whether an agent was typed."""
        return bool(self.command or self.module or self.function)

    def read(self, context: typer.Context) -> Agent | None:
        """Return the agent that was typed, or None."""
        from tracefork_core.cli.agent.agent import read_agent

        return read_agent(self.command or [], _behind_dashes(context), self.module, self.function)

    def read_for(self, tape: Path, context: typer.Context) -> tuple[Agent, Path]:
        """Return the agent to run against a tape, and the folder to run it in."""
        from tracefork_core.cli.agent.recorded_command import agent_for

        after = _behind_dashes(context)
        return agent_for(tape, self.command or [], after, self.module, self.function)


@dataclass(frozen=True, slots=True)
class Switches:
    """What is left as it is around the agent."""

    no_clock: Annotated[bool, typer.Option("--no-clock", help="Leave the wall clock alone.")] = (
        False
    )
    no_entropy: Annotated[
        bool, typer.Option("--no-entropy", help="Leave what is drawn at random alone.")
    ] = False
    no_subprocess: Annotated[
        bool, typer.Option("--no-subprocess", help="Refuse to start other programs.")
    ] = False


@dataclass(frozen=True, slots=True)
class ReplayOptions(Switches):
    """How the requests of a replay are compared, and what is left as it is."""

    match: Annotated[
        list[str] | None,
        typer.Option("--match", metavar="NAME", help="Widen what counts as equal: json."),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore", metavar="/POINTER", help="Do not compare this place of JSON bodies."
        ),
    ] = None
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", metavar="HOST", help="Let connections to HOST or HOST:PORT through."
        ),
    ] = None
    mask: Mask = None

    @property
    def matchers(self) -> list[str]:
        """The matchers that --match and --ignore name."""
        return [*(self.match or []), *(f"ignore:{pointer}" for pointer in self.ignore or [])]

    @property
    def words(self) -> list[str]:
        """The same options as words of a command line, for a replay in another process."""
        words = [f"--match={name}" for name in self.match or ()]
        words += [f"--ignore={pointer}" for pointer in self.ignore or ()]
        words += [f"--allow={host}" for host in self.allow or ()]
        words += [f"--mask={entry}" for entry in self.mask or ()]
        words += ["--no-clock"] * self.no_clock + ["--no-entropy"] * self.no_entropy
        return words + ["--no-subprocess"] * self.no_subprocess


@dataclass(frozen=True, slots=True)
class QuestionEdit:
    """How the question at a fork point is changed."""

    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Ask another model there.")
    ] = None
    temperature: Annotated[
        float | None, typer.Option("--temperature", metavar="T", help="Ask at another temperature.")
    ] = None
    system: Annotated[
        str | None, typer.Option("--system", metavar="TEXT", help="Ask with another system prompt.")
    ] = None
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="Ask this instead.")
    ] = None

    def edit(self) -> Edit | None:
        """Return the change of the question, None where there is none."""
        return _edit(self.model, self.temperature, self.system, self.prompt)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What happens to live calls with side effects."""

    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Do again what may change the world.")
    ] = False
    stub_writes: Annotated[
        bool, typer.Option("--stub-writes", help="Answer that as recorded, where something was.")
    ] = False

    def writes(self) -> Writes:
        """Return what happens to live calls with side effects.

        Raises:
            UsageError: both options were given.
        """
        if self.allow_writes and self.stub_writes:
            raise UsageError("tracefork: --allow-writes or --stub-writes, not both.")
        return "allow" if self.allow_writes else "stub" if self.stub_writes else "refuse"


@dataclass(frozen=True, slots=True)
class TailOptions(WriteOptions):
    """How the live part of the forks of a blame or a bisection runs."""

    tail_model: Annotated[
        str | None,
        typer.Option("--tail-model", metavar="MODEL", help="Ask another model whatever is live."),
    ] = None
    tail_temperature: Annotated[
        float | None,
        typer.Option("--tail-temperature", metavar="T", help="Ask that at another temperature."),
    ] = None
    mask: Mask = None

    def tail(self) -> Edit | None:
        """Return the change of every live question, None where there is none."""
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


def _behind_dashes(context: typer.Context) -> list[str]:
    """Return the words behind `--`, which `main` passes apart from the command line."""
    return [str(word) for word in context.obj] if isinstance(context.obj, list) else []

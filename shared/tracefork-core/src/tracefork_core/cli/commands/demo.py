"""`tracefork demo`: a guided tour, offline: every step is a real command."""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Protocol

import typer

from tracefork_core.cli import options
from tracefork_core.cli.display import screen
from tracefork_core.cli.exits import EXITS
from tracefork_core.errors import UsageError

GROUP = "tracefork.demos"
TAPE = "ticket.tape"
INSTALL = "pip install 'tracefork-langgraph[demo]'"

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class Provider(Protocol):
    """A scripted model provider on loopback."""

    @property
    def url(self) -> str: ...


class Demo(Protocol):
    """The object, usually a module, that an entry point of the group `tracefork.demos` names.

    Attributes:
        AGENT: a script whose run goes wrong.
        EDIT: a text in the script, and the text that replaces it.
        BLAME: the arguments of `tracefork blame TAPE`.
        REPAIR: the arguments of `tracefork fork TAPE`.
    """

    AGENT: Path
    EDIT: tuple[str, str]
    BLAME: Sequence[str]
    REPAIR: Sequence[str]

    def provider(self) -> contextlib.AbstractContextManager[Provider]:
        """Return the provider; each `with` starts it, always at the same address."""

    def ENVIRONMENT(self, url: str) -> Mapping[str, str]:  # noqa: N802 - named by the contract
        """Return the variables that point the agent at the provider."""


@app.command()
def demo(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Name of the demo, if several are installed."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Folder to work in (default: ./tracefork-demo)."),
    ] = None,
    temp: Annotated[bool, typer.Option("--temp", help="Work in a new temporary folder.")] = False,
    as_json: options.AsJson = False,
) -> int:
    """Take a guided tour, offline: every step is a real command.

    The tour records an agent, replays it, looks at the tape, changes one byte, and finds and
    repairs the step that made the run fail. The model is a scripted provider on this machine. Every
    command is shown before it runs.
    """
    if folder and temp:
        raise UsageError("tracefork: --dir and --temp exclude each other. Give one of them.")
    chosen = _load(name)
    place = _folder(folder, temp=temp)
    steps = list(_Tour(chosen, place, as_json=as_json).steps())
    failed = next((step for step in steps if step.exit != step.expected), None)
    code = 0 if failed is None else failed.exit or 1
    if as_json:
        screen.say_json(
            {
                "command": "demo",
                "exit": code,
                "folder": str(place),
                "steps": [step.document() for step in steps],
            }
        )
    elif failed is None:
        _print_summary(chosen, place)
    else:
        _print_failure(failed)
    return code


@dataclass(frozen=True, slots=True)
class _Step:
    """One command of the tour; its output is kept only for a JSON document."""

    words: str
    expected: int
    exit: int
    output: str | None

    def document(self) -> dict[str, object]:
        return {
            "command": self.words,
            "expected": self.expected,
            "exit": self.exit,
            "output": self.output,
        }


@dataclass(frozen=True, slots=True)
class _Tour:
    demo: Demo
    folder: Path
    as_json: bool

    def steps(self) -> Iterator[_Step]:
        """Run the tour, up to the first command with an unexpected exit code."""
        for step in self._all():
            yield step
            if step.exit != step.expected:
                return

    def _all(self) -> Iterator[_Step]:
        script = Path(self.demo.AGENT).name
        agent = Path(shutil.copy(self.demo.AGENT, self.folder / script))
        manager = self._provider()
        with manager as provider:
            environment = dict(self.demo.ENVIRONMENT(provider.url))
            self._say("Record", "an agent answers a support ticket badly; the model is live.")
            recorded = self._run(["record", "-o", TAPE, script], 0, environment)
        yield recorded
        self._say("Replay", "the provider is stopped, the network is closed, no key is needed.")
        yield self._run(["replay", TAPE, script], 0, environment)
        self._say("Look", "every call of the agent is on the tape.")
        yield self._run(["show", TAPE], 0, environment)
        self._say("Change one byte", "of the agent's prompt, and replay again.")
        self._edit(agent)
        yield self._run(["replay", TAPE, script], 1, environment)
        shutil.copy(self.demo.AGENT, agent)
        with manager:
            self._say("Blame", "which step made the run fail? Forks of it are run and graded.")
            yield self._run(["blame", TAPE, *self.demo.BLAME, "--yes"], 0, environment)
            self._say("Repair", "change the question at that step, and continue from there.")
            yield self._run(["fork", TAPE, *self.demo.REPAIR], 0, environment)

    def _provider(self) -> contextlib.AbstractContextManager[Provider]:
        try:
            return self.demo.provider()
        except ImportError as error:
            raise UsageError(
                f"tracefork: the demo needs {error.name}, which is not installed. Type: {INSTALL}"
            ) from error

    def _edit(self, agent: Path) -> None:
        before, after = self.demo.EDIT
        source = agent.read_text(encoding="utf-8")
        if before not in source:
            raise UsageError(f"tracefork: the demo's agent {agent} does not contain {before!r}.")
        agent.write_text(source.replace(before, after, 1), encoding="utf-8")
        if not self.as_json:
            console = screen.stdout()
            console.print(f"  - {before}", style=screen.BAD, soft_wrap=True)
            console.print(f"  + {after}", style=screen.GOOD, soft_wrap=True)

    def _run(self, words: list[str], expected: int, environment: Mapping[str, str]) -> _Step:
        """Run one command in a process of its own; its output goes to the terminal as it comes."""
        typed = shlex.join(["tracefork", *words])
        if not self.as_json:
            screen.stdout().print(f"$ {typed}", style=screen.STRONG, soft_wrap=True)
            sys.stdout.flush()
        done = subprocess.run(  # noqa: S603 - our own command line
            [sys.executable, "-m", "tracefork_core.cli.main", *words],
            cwd=self.folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if self.as_json else None,
            stderr=subprocess.STDOUT if self.as_json else None,
            text=True,
            errors="backslashreplace",
            check=False,
        )
        return _Step(typed, expected, done.returncode, done.stdout)

    def _say(self, title: str, words: str) -> None:
        if not self.as_json:
            from rich.text import Text

            screen.stdout().print(Text(f"\n{title}: ", screen.STRONG).append(words, "not bold"))


def _load(name: str | None) -> Demo:
    points = {point.name: point for point in entry_points(group=GROUP)}
    if not points:
        raise UsageError(f"tracefork: no demo is installed. Type: {INSTALL}")
    if name is not None and name not in points:
        raise UsageError(
            f"tracefork: there is no demo {name}. Installed: {', '.join(sorted(points))}."
        )
    return _import(points[name or min(points)])


def _import(point: EntryPoint) -> Demo:
    try:
        demo: Demo = point.load()
    except ImportError as error:
        raise UsageError(
            f"tracefork: the demo {point.name} cannot be loaded: {error}. Type: {INSTALL}"
        ) from error
    return demo


def _folder(asked: Path | None, *, temp: bool) -> Path:
    """Create an empty folder to work in."""
    if temp:
        return Path(tempfile.mkdtemp(prefix="tracefork-demo-"))
    if asked is None:
        names = itertools.chain(
            ["tracefork-demo"], (f"tracefork-demo-{i}" for i in itertools.count(2))
        )
        asked = next(Path(name) for name in names if not Path(name).exists())
    if asked.exists() and (not asked.is_dir() or any(asked.iterdir())):
        raise UsageError(f"tracefork: {asked} already exists. Choose a new or an empty folder.")
    asked.mkdir(parents=True, exist_ok=True)
    return asked.absolute()


def _print_summary(chosen: Demo, folder: Path) -> None:
    console = screen.stdout()
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    script = Path(chosen.AGENT).name
    console.print(
        "\n✓ Recorded, replayed without a provider, caught one byte, repaired the culprit."
    )
    console.print(f"  Everything is in {shown}: {script}, {TAPE}.", soft_wrap=True)
    console.print("  next: tracefork record your_agent.py && tracefork replay last", soft_wrap=True)


def _print_failure(step: _Step) -> None:
    console = screen.stderr()
    expected = f"{step.expected} ({EXITS[step.expected]})"
    got = f"{step.exit} ({EXITS[step.exit]})" if step.exit in EXITS else str(step.exit)
    console.print(f"\n✗ {step.words}")
    console.print(f"  exited with {got}; expected {expected}.")
    console.print("  The tour stopped there. `tracefork doctor` lists what is installed.")

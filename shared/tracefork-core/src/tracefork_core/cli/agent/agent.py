"""Run the agent (a script, a module, a function or a project) in this process as Python would."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from tracefork_core.cli.agent import hash_seed, project, proxied
from tracefork_core.cli.agent.as_main import (
    NoAgentError,
    main_in,
    run_module,
    run_script,
    script_module,
)
from tracefork_core.cli.agent.ending import Ending
from tracefork_core.cli.agent.hard_exit import Outcome, told_before_it_leaves
from tracefork_core.cli.agent.shutdown import end_forked, ended
from tracefork_core.cli.usage_errors import guess
from tracefork_core.errors import TraceforkError, UsageError
from tracefork_core.seams.tools.tool_names import NoToolError, expect_main

if TYPE_CHECKING:
    from tracefork_core.service.handler import Answer

R = TypeVar("R")
Form = Literal["script", "module", "function", "project", "app", "proxied"]
_NAMED: dict[Form, str] = {
    "function": "--agent takes package.module:function",
    "app": "--app takes package.module:app",
}
_A = {"app": "an ASGI, WSGI or Celery app", "function": "a function"}
_PYTHON = re.compile(r"python[\d.]*")
_DATABASE = b"SQLite format 3"
"""The first bytes of a tape."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent to record or replay; `target` is a path, a module or "pkg.mod:function".

    An app is one, too: its arguments are the tape whose request it handles, and headers. `answers`
    are what it answered. So is a command that runs behind a proxy (`cli/agent/proxied.py`): its
    arguments are options of the proxy, "--" and the command.
    """

    form: Form
    target: str
    args: tuple[str, ...] = ()
    answers: list[Answer] = field(default_factory=list, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The stem of a tape's default name."""
        if self.form == "script":
            return Path(self.target).stem
        if self.form == "project":
            return Path(self.target).resolve().name
        return self.target.partition(":")[0].rpartition(".")[2]

    @property
    def argv(self) -> list[str]:
        """The arguments that name this agent on a tracefork command line."""
        if self.form == "app":
            headers = [word for header in self.args[1:] for word in ("--header", header)]
            return ["--app", self.target, *headers]
        if self.form == "proxied":
            return list(self.args)
        option = {"module": ["-m"], "function": ["--agent"]}.get(self.form, [])
        return [*option, self.target, *(["--", *self.args] if self.args else [])]

    @property
    def words(self) -> str:
        """The same arguments, quoted for a shell."""
        return shlex.join(self.argv)

    def command(self, verb: str, tape: str) -> str:
        """Return the command line that runs this agent with a tape: `tracefork replay TAPE …`."""
        return shlex.join(["tracefork", *self.verb(verb), tape, *self.argv])

    def verb(self, verb: str) -> list[str]:
        """Return the words of a command for this agent: `replay`, or `proxy replay`."""
        return ["proxy", verb] if self.form == "proxied" else [verb]

    def prepare(self) -> None:
        """Set `sys.argv` and `sys.path` as Python would, and check that the target exists.

        For a project, also change to its folder and set its environment variables.

        Raises:
            UsageError: the script, module, function or project does not exist.
        """
        if self.form == "proxied":
            proxied.prepare(self.args)
            return
        if self.form == "project":
            sys.argv = [self.target, *self.args]
            self._check_module(project.enter(Path(self.target)).function)
            return
        script = self.form == "script"
        if script:
            _check_script(Path(self.target))
        if self.target.partition(".")[0] == "pytest":
            # Load its pytest plugin too, which chance/system_clock.py leaves out.
            import_module("time_machine")
        if not sys.flags.safe_path:
            # The first entry belongs to whatever started this process; now the agent does.
            sys.path[0] = self._first_on_path()
        sys.argv = [self.target, *self.args]
        if not script:
            self._check_module(self.target)
        if self.form in ("script", "module"):
            expect_main(script_module(self.target) if script else self.target)

    def _first_on_path(self) -> str:
        if self.form != "script":
            return str(Path.cwd())
        script = Path(self.target)
        return str(script.absolute() if main_in(self.target) else script.resolve().parent)

    def run_under(
        self,
        scope: AbstractContextManager[R],
        *,
        show: bool,
        told: Callable[[Outcome[R]], int] | None = None,
        is_stopped: Callable[[R], bool] = lambda _: False,
    ) -> tuple[R, Ending]:
        """Run inside a recording or a replay; return the value of `scope` and the agent's ending.

        Args:
            scope: the recording or replay.
            show: print an exception of the agent at once, as Python does. An exception that an
                error of tracefork caused is printed only after the scope has closed without error.
            told: reports the result and returns the exit code, for an agent that ends the process
                itself.
            is_stopped: returns whether tracefork itself ended the run, which it is given. What the
                agent raised then is not shown: the command says why it ended.

        Raises:
            TraceforkError: from the scope, or from the agent.
        """
        from tracefork_core.egress import guard

        ending: Ending | None = None
        notes: list[str] = []
        process = os.getpid()
        if hash_seed.is_own_process:
            gc.freeze()  # Collections in and after the run then skip what the command has loaded.
        try:
            with scope as run:
                with told_before_it_leaves(scope, run, told) if told else nullcontext():
                    ending = self._run()
                    if os.getpid() != process:
                        end_forked(ending)  # The parent closes the scope and reports the run.
                    show = show and not is_stopped(run)
                    ending = ended(ending, show=show)
                    guard.stay()
                notes = ending.notes
                if ending.error is not None:
                    raise ending.error
        except BaseException as error:
            ours = isinstance(error, TraceforkError)
            if ours or ending is None or error is not ending.error:
                raise
        if show and not is_stopped(run):
            ending.show_rest(notes)
        return run, ending

    def run(self) -> Ending:
        """Run the agent, and what Python runs after it, in the current session if any."""
        return ended(self._run(), show=False)

    def _run(self) -> Ending:
        try:
            if self.form == "script":
                run_script(self.target)
            elif self.form == "module":
                run_module(self.target)
            elif self.form == "proxied":
                self._run_proxied()
            else:
                self.call()
        except (NoAgentError, NoToolError):
            raise
        except BaseException as error:  # noqa: BLE001 - any exception can end an agent
            return Ending.of(error)
        return Ending(0)

    def _run_proxied(self) -> None:
        try:
            proxied.run(self.args)
        except UsageError as error:  # The port is taken, say: nothing has run.
            raise NoAgentError(str(error)) from error

    def _check_module(self, target: str) -> None:
        module, colon, function = target.partition(":")
        if self.form in _NAMED and not (colon and module and function.isidentifier()):
            raise UsageError(f"tracefork: {_NAMED[self.form]}, not {self.target}.")
        if module.endswith(".py"):
            file, here = Path(module).resolve(), Path.cwd().resolve()
            top = here if file.is_relative_to(here) else file.parent
            meant = ".".join(file.relative_to(top).with_suffix("").parts)
            where = "" if top == here else f" in {shlex.quote(str(top))}"
            option = "-m" if not colon else "--app" if self.form == "app" else "--agent"
            raise UsageError(
                f"tracefork: {module} is a file, not a module. Use the name of its module{where}: "
                f"{option} {meant}{colon}{function}"
            )
        first = module.partition(".")[0]
        try:
            found = importlib.util.find_spec(first) if first else None
        except ValueError:  # __main__, or a module without a spec
            found = None
        if found is None:
            raise UsageError(
                f"tracefork: no module named {first or module} in {Path.cwd()} or installed."
            )

    def call(self) -> object:
        """Call the function, sync or async, and return its result.

        An app handles the recorded request, and what it answers is the result.
        """
        if self.form == "app":
            return self._handle()
        import asyncio
        import inspect

        # `prepare` has changed to the project's folder. Its function takes no arguments.
        here = project.find(Path.cwd()) if self.form == "project" else None
        module, _, name = (here.function if here else self.target).partition(":")
        value = _named(module, name)(*(() if here else self.args))
        if inspect.isgenerator(value) or inspect.isasyncgen(value):
            raise NoAgentError(
                f"tracefork: {module}:{name} is a generator, so calling it runs nothing. Name a "
                "function that iterates over it."
            )
        return asyncio.run(value) if inspect.iscoroutine(value) else value

    def _handle(self) -> str:
        """Have the app handle the recorded request, and return the body of its response."""
        from tracefork_core.cli.agent.app import handle
        from tracefork_core.service.handler import Answer

        module, _, name = self.target.partition(":")
        app = _named(module, name, is_app=True)
        self.answers.append(answer := Answer())  # Also that of an app which raises.
        handle(app, Path(self.args[0]), self.args[1:], answer)
        return answer.text


def read_agent(
    words: Sequence[str], after: Sequence[str], module: str | None, function: str | None
) -> Agent | None:
    """Return the agent that a command line names; None if it names none.

    `words` come before `--` and `after` come after it. With a module or a function, all of them are
    its arguments. Without, the first word is a script or the folder of a project.

    Raises:
        UsageError: both a module and a function are given, or arguments without an agent.
    """
    if words and _PYTHON.fullmatch(words[0]) and not Path(words[0]).exists():
        rest = [*(["-m", module] if module else []), *words[1:]]
        raise UsageError(
            f"tracefork: the agent runs in this Python. Leave {words[0]} out: {shlex.join(rest)}"
        )
    if module and function:
        raise UsageError("tracefork: -m and --agent cannot be used together. Name one agent.")
    if module:
        return Agent("module", module, (*words, *after))
    if function:
        return Agent("function", function, (*words, *after))
    if words:
        is_project = Path(words[0]).is_dir() and main_in(words[0]) is None
        form: Form = "project" if is_project else "script"
        return Agent(form, words[0], (*words[1:], *after))
    if after:
        raise UsageError(
            "tracefork: there are arguments after `--`, but no agent before it. "
            "Type: SCRIPT.py -- ARGS"
        )
    return None


def _check_script(path: Path) -> None:
    if path.is_dir() and main_in(str(path)):
        return
    if not path.is_file():
        raise UsageError(f"tracefork: no script at {path} in {Path.cwd()}.")
    with path.open("rb") as file:
        if file.read(len(_DATABASE)) == _DATABASE:
            raise UsageError(
                f"tracefork: {path} is a tape, not a script. To see what is on it: tracefork show "
                f"{shlex.quote(str(path))}"
            )


def _named(module: str, name: str, *, is_app: bool = False) -> Callable[..., object]:
    try:
        found = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # The module exists, but imports one that does not.
        raise NoAgentError(
            f"tracefork: no module named {error.name} for {module}:{name}."
        ) from error
    # A Celery app can be called only under some versions.
    if found is None or not (callable(found) or (is_app and hasattr(found, "tasks"))):
        kind = "app" if is_app else "function"
        what = f"no {kind} {name}" if found is None else f"{name}, which is not {_A[kind]}"
        known = vars(sys.modules[module]).items()
        close = guess(name, [other for other, value in known if callable(value)])
        raise NoAgentError(f"tracefork: the module {module} has {what}.{close}")
    function: Callable[..., object] = found
    return function

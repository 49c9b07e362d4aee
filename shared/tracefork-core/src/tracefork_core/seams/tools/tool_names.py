"""The names under which a user makes functions tools: `agent:charge_card=write`, `agent:TOOLS`.

The same text is an option of the command line, an entry in pyproject.toml, an argument of `record`,
and a line on the tape.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import PurePath
from types import ModuleType
from typing import Any, cast, get_args

from tracefork_core.errors import UsageError
from tracefork_core.exchange.contract import Effect

_EFFECTS = get_args(Effect)
_TEXT = re.compile(r"(?P<module>[\w.-]+):(?P<path>[^\W\d]\w*(\.[^\W\d]\w*)*)(=(?P<effect>.*))?")
_OURS = "tracefork_core"
MAIN = "__main__"


class NoToolError(UsageError):
    """A function that was named as a tool does not exist; nothing of the run is kept."""


@dataclass(frozen=True, slots=True)
class ToolName:
    """A function, or a table of functions, as a user names it.

    Attributes:
        module: the module; never `__main__`, but the name under which that can be imported.
        path: the name in the module: "charge", "Bank.charge".
        effect: the declared side effect; None if unknown.
        is_table: whether it names a table (`--tool-of`).
    """

    module: str
    path: str
    effect: Effect | None = None
    is_table: bool = False

    @property
    def text(self) -> str:
        """The name as a user types it, and as it lies on the tape."""
        effect = f"={self.effect}" if self.effect else ""
        return f"{self.module}:{self.path}{effect}"

    @property
    def option(self) -> str:
        """The name with its option, for messages."""
        return f"--tool{'-of' if self.is_table else ''} {self.module}:{self.path}"


def read_names(
    tools: Iterable[str | Callable[..., Any]], tables: Iterable[str]
) -> tuple[ToolName, ...]:
    """Return the names that texts and functions stand for, those of functions first, each once.

    Raises:
        UsageError: a text is no such name, or a function has none that leads to it.
    """
    if isinstance(tools, str) or isinstance(tables, str):
        raise UsageError("tracefork: tools and tools_of take a list of names, not one text.")
    names = [_read(tool) if isinstance(tool, str) else _name_of(tool) for tool in tools]
    names += [_read(table, is_table=True) for table in tables]
    return tuple(dict.fromkeys(names))


def _read(text: str, *, is_table: bool = False) -> ToolName:
    form = "MODULE:TABLE" if is_table else "MODULE:NAME, MODULE:NAME=read, =write or =pure"
    example = "agent:TOOLS" if is_table else "agent:charge_card=write"
    match = _TEXT.fullmatch(text)
    file, colon, rest = text.partition(".py:")
    if colon:
        raise UsageError(
            f"tracefork: a tool is named by its module, not by its file (got {text!r}). Type "
            f"{PurePath(file).name}:{rest}"
        )
    if match is None or (is_table and match["effect"] is not None):
        raise UsageError(
            f"tracefork: the name of a {'table of tools' if is_table else 'tool'} is {form} (got "
            f"{text!r}). For example: {example}"
        )
    effect, module = match["effect"], match["module"]
    if effect is not None and effect not in _EFFECTS:
        raise UsageError(
            f"tracefork: the effect of {module}:{match['path']} must be one of "
            f"{', '.join(_EFFECTS)} (got {effect!r})."
        )
    _check_module(module)
    module = main_name() or module if module == MAIN else module
    return ToolName(module, match["path"], cast("Effect | None", effect), is_table)


def _check_module(module: str) -> None:
    top = module.partition(".")[0]
    if (top in sys.stdlib_module_names and top != MAIN) or top == _OURS:
        owner = "tracefork" if top == _OURS else "Python"
        raise UsageError(
            f"tracefork: {module} is a module of {owner} itself. Only functions of your own code "
            "can be tools. Name a function of yours that calls it."
        )


def _name_of(function: Callable[..., Any]) -> ToolName:
    """Return the name that leads to a function."""
    inner: Any = function
    while isinstance(inner, partial):
        inner = inner.func
    inner = inspect.unwrap(getattr(inner, "__func__", inner))
    module = getattr(inner, "__module__", None)
    path = getattr(inner, "__qualname__", None)
    if not module or not path:
        raise UsageError(
            f"tracefork: {function!r:.80} has no module and name that lead to it. Name it as a "
            "text: tools=['agent:charge_card']."
        )
    if "<" in path:
        raise UsageError(
            f"tracefork: {path} is defined inside a function, or has no name, so a replay could "
            "not find it again. Put @tracefork.tool above it, or define it at the top of "
            f"{module}."
        )
    return _read(f"{module}:{path}")


def main_name() -> str | None:
    """Return the name under which the running `__main__` can be imported; None if it has none."""
    main = sys.modules.get(MAIN)
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None and spec.name != MAIN:
        return str(spec.name)
    return PurePath(file).stem if file else None


_expected_main: str | None = None


def expect_main(module: str | None) -> None:
    """Announce the module that the command line will run as `__main__`."""
    global _expected_main
    _expected_main = module


def expected_main() -> str | None:
    """Return the module that the command line will run as `__main__`, or runs."""
    return _expected_main


def check_modules(names: Sequence[ToolName], known: Iterable[str]) -> None:
    """Check that the modules of names can be found; nothing is imported.

    Args:
        names: what a user named.
        known: modules that exist although they cannot be imported, and close matches for an error.

    Raises:
        NoToolError: a module cannot be found.
    """
    known = [*known]
    for name in names:
        top = name.module.partition(".")[0]
        if name.module in known or name.module in sys.modules or top in sys.modules:
            continue
        try:
            spec = importlib.util.find_spec(top)
        except ValueError:  # `__main__`, or a module without a spec
            continue
        if spec is None:
            close = get_close_matches(name.module, known, n=1, cutoff=0.6)
            hint = f" Did you mean {close[0]}:{name.path}?" if close else ""
            raise NoToolError(
                f"tracefork: {name.option}: there is no module {top} in the agent's folder, on "
                f"PYTHONPATH or installed.{hint} If the agent adds a folder to sys.path itself, "
                "set PYTHONPATH to that folder."
            )


def missing(name: ToolName, held: Iterable[str], why: str = "") -> NoToolError:
    """Return the error for a name that a module does not have.

    Args:
        name: the name.
        held: what the module has, as paths.
        why: replaces what the module has, where the reason is another.
    """
    held = sorted({*held})
    close = get_close_matches(name.path, held, n=1, cutoff=0.5)
    if not close and (last := name.path.rpartition(".")[2]):
        close = [path for path in held if path.rpartition(".")[2] == last][:1]
    option = "--tool-of" if name.is_table else "--tool"
    if why:
        hint = why
    elif close:
        hint = f"Did you mean {option} {name.module}:{close[0]}?"
    else:
        few = ", ".join(held[:8]) + (", …" if len(held) > 8 else "")
        hint = f"It has {few}. Name one of them." if few else "It has no function."
    what = "table" if name.is_table else "function"
    return NoToolError(
        f"tracefork: {name.option}: the module {name.module} has no {what} {name.path}. {hint}"
    )


def paths_in(module: ModuleType, *, tables: bool) -> list[str]:
    """Return the names of a module's own functions and methods, or of its tables."""
    paths = []
    for name, value in vars(module).items():
        if name.startswith("__"):
            continue
        if tables:
            paths += [name] if isinstance(value, list | tuple | set | dict) else []
        elif inspect.isclass(value):
            if value.__module__ == module.__name__:
                members = vars(value).items()
                paths += [f"{name}.{m}" for m, f in members if callable(f) and m[:2] != "__"]
        elif callable(value) and getattr(value, "__module__", "") == module.__name__:
            paths.append(name)
    return paths

"""Make functions tools by name, in modules that are loaded already and in those that come later.

A function is redirected (`redirected_tools`) as soon as its module has it: when the session opens,
when the module is imported, or right after the statement that defines it, in a script that runs as
`__main__`.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType, ModuleType

from tracefork_core.errors import TapeError, TraceforkError, UsageError
from tracefork_core.exchange.contract import Session
from tracefork_core.patching import module_body
from tracefork_core.patching.on_import import OnImport
from tracefork_core.seams.tools.definition import is_name
from tracefork_core.seams.tools.function_search import entries, functions_in, is_absent, value_at
from tracefork_core.seams.tools.redirected_tools import forget, make_tool, was_called
from tracefork_core.seams.tools.tool_names import (
    MAIN,
    NoToolError,
    ToolName,
    check_modules,
    expected_main,
    main_name,
    missing,
    paths_in,
    read_names,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracefork_core.tape import Tape

_open: list[NamedTools] = []
_lock = threading.RLock()


class NamedTools:
    """The functions that one session makes tools by name.

    Attributes:
        names: what was named, functions before tables.
        unused: what of it had no effect on the run, and why, once the session is over.
    """

    def __init__(self, names: Sequence[ToolName] = ()) -> None:
        self.names = tuple(names)
        self.unused: list[str] = []
        self._functions: dict[ToolName, list[FunctionType]] = {}
        self._met: set[str] = set()
        self._in_main: list[ToolName] = []
        self._undoing = ExitStack()

    @classmethod
    def on(cls, tape: Tape) -> NamedTools:
        """Return the tools that a recording names.

        Raises:
            TapeError: a name on the tape is none that a recording writes.
        """
        environment = tape.environment
        if environment is None:
            return cls()
        try:
            return cls(read_names(environment.tools, environment.tools_of))
        except UsageError as error:
            reason = str(error).removeprefix("tracefork: ")
            raise TapeError(f"tracefork: {tape.path} is corrupt: {reason}") from error

    @property
    def texts(self) -> tuple[list[str], list[str]]:
        """The names of functions and those of tables, as a tape holds them."""
        return (
            [name.text for name in self.names if not name.is_table],
            [name.text for name in self.names if name.is_table],
        )

    def check(self) -> None:
        """Check what a user named before the run begins.

        Raises:
            NoToolError: a module cannot be found, or a loaded one lacks a name.
        """
        coming = expected_main()
        check_modules(self.names, [coming, MAIN] if coming else [main_name() or MAIN])
        for name in self.names:
            for module in _loaded(name.module):
                _found(name, module, is_complete=_is_complete(module))

    @contextmanager
    def of(self, session: Session, fail: Callable[[TraceforkError], object]) -> Iterator[None]:
        """Make the functions tools of a session. `fail` poisons it if a name proves wrong."""
        if not self.names:
            yield
            return
        try:
            self.begin(session, fail)
            yield
        finally:
            with _lock:
                _open.remove(self)
            self._undoing.close()
            self.unused = list(self._unused())
            forget(session)

    def begin(self, session: Session, fail: Callable[[TraceforkError], object]) -> None:
        """Make the functions tools of a session for the rest of this process's life."""
        self._session, self._fail = session, fail
        with _lock:
            _open.append(self)
        for name in self.names:
            for module in _loaded(name.module):
                self._look(name, module, is_complete=_is_complete(module))
            on_import = OnImport(name.module, _Arrival(self, name))
            on_import.on()
            self._undoing.callback(on_import.off)

    def imported(self, name: ToolName) -> None:
        """Look for a name in its module, which has just been loaded."""
        try:
            self._look(name, sys.modules[name.module])
        except NoToolError as error:
            self._fail(error)
            raise

    def run_as_main(self, tree: ast.Module, module: str) -> bool:
        """Return whether a module that is about to run as `__main__` has to be watched.

        Raises:
            NoToolError: its source has no such name.
        """
        mine = [name for name in self.names if name.module in (module, MAIN)]
        bound = module_body.bound_in(tree) if mine else None
        for name in mine:
            if bound is not None and not bound.may_have(name.path):
                last = name.path.rpartition(".")[2]
                why = (
                    f"{last} is defined inside a function there, so no name of the module leads "
                    "to it. Put @tracefork.tool above it, or move it to the top of the module."
                    if last in bound.inside
                    else ""
                )
                error = missing(name, bound.names if name.is_table else bound.functions, why)
                self._fail(error)
                raise error
        self._in_main = mine
        if mine:
            self._undoing.callback(module_body.call_after_statements(_after_statement))
        return bool(mine)

    def after_statement(self) -> None:
        """Look for what the script that runs as `__main__` has bound by now."""
        if not self._in_main:
            return
        main = sys.modules[MAIN]
        for name in list(self._in_main):
            self._look(name, main, is_complete=False)
            if not name.is_table and name in self._functions:
                self._in_main.remove(name)

    def _look(self, name: ToolName, module: ModuleType, *, is_complete: bool = True) -> None:
        """Make a tool of what a name leads to in a module, which may not be complete yet."""
        self._met.add(name.module)
        value = _found(name, module, is_complete=is_complete)
        if is_absent(value):
            return
        last = name.path.rpartition(".")[2]
        named = entries(value, last) if name.is_table else [(last, value)]
        known = self._functions.setdefault(name, [])
        for own_name, entry in named:
            for function in functions_in(entry, {own_name, *self._own_names()}):
                if function not in known:
                    known.append(function)
                    tape_name = _tape_name(function, own_name if name.is_table else name.path)
                    make_tool(self._session, function, tape_name, name.effect)

    def _own_names(self) -> set[str]:
        """Return the names of the functions found so far: a table may hold them decorated."""
        return {function.__name__ for found in self._functions.values() for function in found}

    def _unused(self) -> Iterator[str]:
        for name in self.names:
            functions = self._functions.get(name, [])
            if any(was_called(self._session, function) for function in functions):
                continue
            if functions:
                yield f"{name.option} (not called in this process)"
            elif name.module not in self._met:
                yield f"{name.option} ({name.module} was not imported)"
            else:
                yield f"{name.option} (no function was found there)"


class _Arrival:
    """Tells the tools of a session that the module of a name is loaded."""

    def __init__(self, tools: NamedTools, name: ToolName) -> None:
        self._tools = tools
        self._name = name

    def __call__(self) -> None:
        self._tools.imported(self._name)


def main_code(source: str | bytes, path: str, module: str) -> CodeType | None:
    """Compile a module that runs as `__main__` so that its tools are found; None if it has none.

    Raises:
        NoToolError: a session named a function that its source does not have.
    """
    if not _open:
        return None
    try:
        tree = ast.parse(source, path)
    except (SyntaxError, ValueError):
        return None  # Python reports it when it compiles the source.
    watching = [tools.run_as_main(tree, module) for tools in list(_open)]
    return module_body.compiled(tree, path) if any(watching) else None


def _after_statement() -> None:
    for tools in tuple(_open):
        tools.after_statement()


def _loaded(name: str) -> list[ModuleType]:
    """Return the modules of a name that are loaded: under it, and as `__main__`."""
    modules = [sys.modules.get(name)]
    if expected_main() is None and main_name() == name:
        modules.append(sys.modules.get(MAIN))
    return [module for module in modules if isinstance(module, ModuleType)]


def _is_complete(module: ModuleType) -> bool:
    return not getattr(module.__spec__, "_initializing", False)


def _found(name: ToolName, module: ModuleType, *, is_complete: bool = True) -> object:
    """Return what a name leads to in a module.

    Raises:
        NoToolError: it leads to nothing, although the module is complete, or to no function.
    """
    value = value_at(module, name.path)
    if is_absent(value):
        if is_complete:
            raise missing(name, paths_in(module, tables=name.is_table))
        return value
    if name.is_table:
        if not isinstance(value, list | tuple | set | frozenset | dict):
            raise missing(
                name,
                (),
                f"{name.path} is a {type(value).__name__} there, not a list, a set or a dict. "
                f"Type --tool {name.module}:{name.path} for a single function.",
            )
        return value
    last = name.path.rpartition(".")[2]
    if not functions_in(value, {last}):
        raise missing(name, (), _why_not(name, value))
    return value


def _why_not(name: ToolName, value: object) -> str:
    if isinstance(value, type):
        methods = [m for m, f in vars(value).items() if callable(f) and m[:1] != "_"]
        method = methods[0] if methods else "METHOD"
        return f"It is a class there: name a method of it, {name.module}:{name.path}.{method}."
    if isinstance(value, list | tuple | set | frozenset | dict):
        return f"It is a table there. Type --tool-of {name.module}:{name.path}"
    return (
        f"It is a {type(value).__name__} there, in which no Python function was found. Name a "
        "Python function that calls it."
    )


def _tape_name(function: FunctionType, path: str) -> str:
    own = function.__qualname__.rpartition("<locals>.")[2]
    # A function that a decorator left in its place has the decorator's name, not its own.
    is_its_own = own.rpartition(".")[2] == path.rpartition(".")[2] or "<locals>" not in (
        function.__qualname__
    )
    return own if is_its_own and is_name(own) else path

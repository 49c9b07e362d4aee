"""Look at a module between its statements: names that a script binds while it runs.

A script that runs as `__main__` defines its functions and calls them in one go. So its source is
compiled with a call after each statement at the top of the module that may bind a name. Lines and
columns stay those of the source.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType

_HOOK = "__tracefork_after_statement__"
_BLOCKS = ("body", "orelse", "finalbody")
_DYNAMIC = {"globals", "locals", "vars", "exec", "setattr"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def compiled(tree: ast.Module, path: str) -> CodeType:
    """Compile a module with a call of the hook after its statements; changes the tree."""
    tree.body = _watched(tree.body)
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def call_after_statements(hook: Callable[[], object]) -> Callable[[], None]:
    """Let `hook` be called after statements of modules that are `compiled`; return the undoing."""
    # A builtin: the module's own names stay as they are.
    setattr(builtins, _HOOK, hook)

    def undo() -> None:
        if getattr(builtins, _HOOK, None) is hook:
            setattr(builtins, _HOOK, _nothing)  # The module may still run, in another thread.

    return undo


def _nothing() -> None:
    pass


def _watched(body: list[ast.stmt]) -> list[ast.stmt]:
    futures = [i for i, statement in enumerate(body) if _is_future(statement)]
    first = futures[-1] + 1 if futures else 0
    watched = body[:first]
    for statement in body[first:]:
        # Not inside loops: the call would cost as much as the loop itself.
        if isinstance(statement, ast.If | ast.Try | ast.TryStar | ast.With | ast.AsyncWith):
            for block in _BLOCKS:
                if inner := getattr(statement, block, None):
                    setattr(statement, block, _watched(inner))
            for handler in getattr(statement, "handlers", ()):
                handler.body = _watched(handler.body)
        watched.append(statement)
        if not isinstance(statement, ast.Pass | ast.Raise | ast.Global):
            hook = ast.Name(_HOOK, ast.Load())
            call = ast.Expr(ast.Call(hook, [], []))
            for node in ast.walk(call):
                ast.copy_location(node, statement)
            watched.append(call)
    return watched


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


@dataclass(slots=True)
class Bound:
    """The names that a module binds at its top, as far as its source tells.

    Attributes:
        names: names of any kind.
        functions: functions, and methods as "Class.method".
        plain_classes: classes whose members are all in their body.
        inside: functions that are defined inside of functions.
        is_dynamic: whether it may bind other names, too.
    """

    names: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    plain_classes: set[str] = field(default_factory=set)
    inside: set[str] = field(default_factory=set)
    is_dynamic: bool = False

    def may_have(self, path: str) -> bool:
        """Return whether a dotted name may lead to something in the module."""
        first, _, rest = path.partition(".")
        if first in self.plain_classes and rest:
            return f"{first}.{rest.partition('.')[0]}" in self.names
        return first in self.names or self.is_dynamic


def bound_in(tree: ast.Module) -> Bound:
    """Return the names that a module binds at its top."""
    bound = Bound()
    for node in _scope(tree.body):
        names = _names_bound_by(node)
        bound.names |= names
        if isinstance(node, _FUNCTIONS):
            bound.functions |= names
            _look_inside(node, bound)
        elif isinstance(node, ast.ClassDef):
            members = set().union(*map(_names_bound_by, _scope(node.body)))
            bound.names |= {f"{node.name}.{member}" for member in members}
            defined = [n for n in _scope(node.body) if isinstance(n, _FUNCTIONS)]
            bound.functions |= {f"{node.name}.{m}" for n in defined for m in _names_bound_by(n)}
            if not (node.bases or node.keywords or node.decorator_list):
                bound.plain_classes.add(node.name)
        elif isinstance(node, ast.Name) and node.id in _DYNAMIC:
            bound.is_dynamic = True
    bound.is_dynamic |= "*" in bound.names or "__getattr__" in bound.names
    return bound


def _look_inside(function: ast.AST, bound: Bound) -> None:
    for node in ast.walk(function):
        if isinstance(node, ast.Global):
            bound.names.update(node.names)
        elif isinstance(node, ast.Name) and node.id in _DYNAMIC:
            bound.is_dynamic = True
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node is not function:
            bound.inside.add(node.name)


def _scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a block, but not those inside of functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield from _scope(ast.iter_child_nodes(node))


def _names_bound_by(node: ast.AST) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Name(id=name, ctx=ast.Store()):
            return {name}
        case ast.alias(name=name, asname=other):
            return {other or name.partition(".")[0]}
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return {name}
    return set()

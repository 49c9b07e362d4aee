"""Which functions of a module differ from what they were: the likely cause of a divergence.

A tape holds a hash of the lines of each function, and of those around them. The lines themselves
may hold secrets, so they stay off the tape.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from hashlib import sha256

REST = ""
"""The name of the lines that are part of no function."""
_LONGEST = 1 << 18
"""Longer modules are compared as a whole: to parse them takes too long."""
_TOLD = 4
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions_of(source: bytes) -> dict[str, str]:
    """Return a hash of each function and method of a module, and of the rest; {} if unknown."""
    if len(source) > _LONGEST:
        return {}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    lines: list[bytes] = source.splitlines()
    found: dict[str, list[bytes]] = {}
    for name, node in _functions(tree, ""):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
        last = node.end_lineno or node.lineno
        found.setdefault(name, []).extend(lines[first:last])
        lines[first:last] = [b""] * (last - first)
    found[REST] = [line for line in lines if line.strip()]
    return {name: sha256(b"\n".join(part)).hexdigest()[:8] for name, part in found.items()}


def _functions(parent: ast.AST, path: str) -> Iterator[tuple[str, _Function]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, _Function):
            yield f"{path}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{path}{node.name}.")


def changed_functions(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return "plan() was edited, send() is gone"; empty if it is not known."""
    if not then or not now:
        return ""
    edited = [name for name, sha in then.items() if name and name in now and now[name] != sha]
    gone = [name for name in then if name not in now]
    parts = [f"{name}() was edited" for name in edited] + [f"{name}() is gone" for name in gone]
    if not parts and then.get(REST) != now.get(REST):
        return "its top-level code was edited"
    more = [f"{len(parts) - _TOLD} more"] if len(parts) > _TOLD else []
    return ", ".join([*parts[:_TOLD], *more])

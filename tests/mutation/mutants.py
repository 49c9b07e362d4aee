"""What can be broken in a file: one small change of its source each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_NOT_RUN = {"annotation", "returns", "decorator_list"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the line it begins on, the bytes it replaces, and what stands there instead."""

    line: int
    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """Return the source with this change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants(source: bytes) -> Iterator[Mutant]:
    """Yield each mutant of a source, always in the same order."""
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for node, text in _changes(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = begins[node.lineno - 1] + node.col_offset
        end = begins[node.end_lineno - 1] + node.end_col_offset
        yield Mutant(node.lineno, start, end, text)


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.stmt):
        yield from ((node, text) for text in _of_statement(node))
    elif isinstance(node, ast.expr):
        yield from ((node, f"({text})") for text in _of_expression(node))
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not _is_negated_anyway(node.test):
        yield node.test, f"(not ({ast.unparse(node.test)}))"
    for name, value in ast.iter_fields(node):
        if name in _NOT_RUN or (name == "keywords" and isinstance(node, ast.ClassDef)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from _changes(child)


def _of_statement(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise():
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Delete():
            yield "pass"
        case ast.Break() | ast.Continue():
            yield "pass"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return None"


def _of_expression(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield ast.unparse(ast.Compare(left, [_opposite(op)], [right]))
        case ast.BoolOp(op=op, values=values):
            yield ast.unparse(ast.BoolOp(_opposite(op), values))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPPOSITES:
            yield ast.unparse(ast.BinOp(left, _opposite(op), right))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield ast.unparse(operand)
        case ast.Constant(value=bool(value)):
            yield repr(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield repr(value + 1)


def _opposite(op: ast.AST) -> Any:
    return _OPPOSITES[type(op)]()


def _is_negated_anyway(test: ast.expr) -> bool:
    """Return whether what changes a condition as an expression negates it already."""
    return isinstance(test, ast.Compare | ast.UnaryOp | ast.Constant)

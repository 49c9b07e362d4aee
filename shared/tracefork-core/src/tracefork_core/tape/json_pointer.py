"""JSON pointers (RFC 6901): read a document at one, and put a value there."""

from __future__ import annotations

from typing import Any

from tracefork_core.errors import UsageError


def parts(pointer: str) -> list[str]:
    """Return the parts of a pointer, unescaped."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def escaped(part: str) -> str:
    """Return a name escaped as a part of a pointer."""
    return part.replace("~", "~0").replace("/", "~1")


def child(node: object, part: str) -> object:
    """Return the value that one part of a pointer leads to, None if it leads nowhere."""
    if isinstance(node, dict):
        return node.get(part)
    if isinstance(node, list) and part.isdecimal() and int(part) < len(node):
        return node[int(part)]
    return None


def put(document: dict[str, Any], pointer: str, value: object) -> None:
    """Set the value at a pointer into a request; its parent must exist, `-` appends to an array.

    Raises:
        UsageError: the pointer leads nowhere; the error names its first part that does.
    """
    if not pointer.startswith("/"):
        raise UsageError(f"{pointer!r} is not a JSON pointer. Write it like /messages/0")
    tokens = parts(pointer)
    node: Any = document
    for depth, token in enumerate(tokens[:-1]):
        here = "/".join(pointer.split("/")[: depth + 2])
        if isinstance(node, dict) and token in node:
            node = node[token]
        elif isinstance(node, list) and (index := _index(token, len(node))) is not None:
            node = node[index]
        else:
            raise UsageError(f"{pointer}: the request has no {here}{_there(node)}")
    last = tokens[-1]
    if isinstance(node, dict):
        node[last] = value
    elif isinstance(node, list) and last == "-":
        node.append(value)
    elif isinstance(node, list) and (index := _index(last, len(node))) is not None:
        node[index] = value
    else:
        raise UsageError(f"the request has no {pointer}{_there(node)}")


def _index(token: str, length: int) -> int | None:
    index = int(token) if token.isascii() and token.isdigit() else length
    return index if index < length else None


def _there(node: Any) -> str:
    if isinstance(node, dict):
        return f" (the object has {', '.join(map(repr, node)) or 'no members'})"
    if isinstance(node, list):
        return f" (the array has {len(node)} elements)"
    return " (its parent is neither an object nor an array)"

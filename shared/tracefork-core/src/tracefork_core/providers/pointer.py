"""A value put into a JSON document at an RFC 6901 pointer."""

from __future__ import annotations

from tracefork_core.errors import UsageError
from tracefork_core.providers.lenient import Json
from tracefork_core.tape.json_pointer import parts


def put(document: dict[str, Json], pointer: str, value: Json) -> None:
    """Set one value; what it lies in must be there, `-` is the end of an array.

    UsageError names the first part of the pointer that leads nowhere.
    """
    if not pointer.startswith("/"):
        raise UsageError(f"{pointer!r} is no JSON pointer into the body: write it like /messages/0")
    tokens = parts(pointer)
    node: Json = document
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
        raise UsageError(f"{pointer}: the request has no such place{_there(node)}")


def _index(token: str, length: int) -> int | None:
    index = int(token) if token.isascii() and token.isdigit() else length
    return index if index < length else None


def _there(node: Json) -> str:
    if isinstance(node, dict):
        return f" (there is {', '.join(map(repr, node)) or 'nothing'})"
    if isinstance(node, list):
        return f" (the array has {len(node)} elements)"
    return " (what comes before it is neither an object nor an array)"

"""Read the document in a file of another tool: JSON, JSON lines, YAML or TOML, within bounds.

The file is untrusted. YAML may name one node in many places, so that a small file stands for a huge
document: what it would be without such names is counted before anything is done with it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from tracefork_core.errors import UsageError
from tracefork_core.providers.lenient import MAX_DEPTH

LARGEST = 256 * 2**20
"""The most bytes that a file may have."""
_MOST_NODES = 5_000_000
_EXTRA = "pip install 'tracefork-core[import]'"


def load(path: Path, content: bytes) -> object:
    """Return the document in a file; for JSON lines, the list of them.

    Raises:
        UsageError: the file is in none of these formats, is too large, or nests too deeply; or it
            is YAML and the extra `import` is not installed.
    """
    if len(content) > LARGEST:
        raise UsageError(
            f"tracefork: {path} has {len(content)} bytes, and at most {LARGEST} are imported."
        )
    content = content.removeprefix(b"\xef\xbb\xbf")
    if content.lstrip()[:1] in (b"{", b"["):
        document = _json(path, content)
    elif path.suffix == ".toml":
        document = _toml(path, content)
    else:
        document = _yaml(path, content)
    if not _is_bounded(document):
        raise UsageError(
            f"tracefork: {path} nests deeper than {MAX_DEPTH} levels, refers to itself, or repeats "
            f"its parts to more than {_MOST_NODES:,} values."
        )
    return document


def _json(path: Path, content: bytes) -> object:
    try:
        return msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:
        try:
            lines = [line for line in content.splitlines() if line.strip()]
            return [msgspec.json.decode(line) for line in lines]
        except (ValueError, RecursionError):
            raise _unreadable(path, "JSON", str(error)) from error


def _toml(path: Path, content: bytes) -> object:
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, "TOML", str(error)) from error


def _yaml(path: Path, content: bytes) -> object:
    if b"\0" in content:
        raise UsageError(f"tracefork: {path} is not a text file. Name a recording or a trace.")
    try:
        import yaml
    except ImportError as error:
        raise UsageError(
            f"tracefork: to read YAML, import needs an extra ({error.name} is not installed): "
            f"{_EXTRA}."
        ) from error
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(content, Loader=loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        problem = getattr(error, "problem", None) or error
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)
        raise _unreadable(path, "YAML", where) from error


def _unreadable(path: Path, language: str, why: str) -> UsageError:
    first = why.partition("\n")[0][:200]
    return UsageError(
        f"tracefork: {path} cannot be read as {language} ({first}). Name a recording or a trace of "
        "another tool."
    )


def _is_bounded(document: object) -> bool:
    """Return whether a document is as shallow and as small as it must be, names resolved."""
    try:
        size, height = _measure(document, {})
    except RecursionError:
        return False
    return size <= _MOST_NODES and height <= MAX_DEPTH


def _measure(node: object, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the number of values in a node, a shared one counted each time, and its height."""
    if not isinstance(node, dict | list):
        return 1, 0
    measured = known.get(id(node))
    if measured is None:
        known[id(node)] = _MOST_NODES + 1, 0  # Stays so where the node holds itself.
        children = node.values() if isinstance(node, dict) else node
        below = [_measure(child, known) for child in children]
        measured = (
            1 + sum(size for size, _ in below),
            1 + max((height for _, height in below), default=0),
        )
        known[id(node)] = measured
    return measured

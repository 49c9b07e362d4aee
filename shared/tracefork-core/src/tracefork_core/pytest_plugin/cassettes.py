"""Replay the tests of pytest-recording and pytest-vcr from their cassettes (`--tape-import`).

The mark `vcr`, the fixtures `vcr_config`, `vcr_cassette_dir` and `default_cassette_name` and the
places of the files are theirs. A cassette is imported for each test, and never written to. The
replay is stricter than vcrpy, which compares the method and the URL: bodies are compared too, those
in JSON by their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import md5
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tracefork_core.interop.importing import document, vcr
from tracefork_core.interop.importing.recording import write
from tracefork_core.pytest_plugin.taped import Taped
from tracefork_core.run.record import record
from tracefork_core.run.scope import Scope
from tracefork_core.tape import Tape
from tracefork_core.tape.imported import GRADES

if TYPE_CHECKING:
    from tracefork_core.pytest_plugin.outcome import Outcome

MATCHED = ("method", "scheme", "host", "port", "path", "query")
"""What vcrpy compares, unless `match_on` says something else."""
_FORBIDDEN = str.maketrans(dict.fromkeys("<>?%*:|\"'/\\", "-"))
_LONGEST = 255
_DISABLED = ("disable_recording", "disable_vcr")
"""Options of pytest-recording and of pytest-vcr that keep vcrpy out of a test."""


class CassetteTape(Taped):
    """The tape of a test with cassettes: replayed in every mode, because nothing is recorded."""

    def _chosen(self, stack: ExitStack) -> Scope[Any]:
        return self._replay()


def disable_vcrpy(config: pytest.Config) -> None:
    """Keep the plugins that install vcrpy from doing so, where they are installed."""
    for option in _DISABLED:
        if hasattr(config.option, option):
            setattr(config.option, option, True)


def tape_of_cassettes(item: Any, outcome: Outcome) -> tuple[Path, dict[str, Any]]:
    """Import the cassettes of a test; return the tape, and options of its replay.

    A test without a cassette has an empty tape: it must not ask for anything.

    Raises:
        TraceforkError: a cassette cannot be read.
    """
    config = _config(item)
    paths = [path for path in _paths(item, config) if path.is_file()]
    main = paths[0] if paths else item.path.with_suffix("") / _name(item)
    target = outcome.aside(main.with_name(f"{main.stem}.tape"))
    if not paths:
        with record(target):
            pass
        return target, {}
    contents = [path.read_bytes() for path in paths]
    loaded = [document.load(path, content) for path, content in zip(paths, contents, strict=True)]
    run = vcr.read_cassette({"interactions": list(_interactions(loaded))})
    write(run, main, b"".join(contents), target)
    if not run.exchanges:
        target.unlink()
        with record(target):
            pass
    with Tape.open(target) as tape:
        imported = tape.imported
    words = GRADES[imported.grade] if imported is not None else "no recorded call"
    matched = ", ".join(map(str, config.get("match_on") or MATCHED))
    outcome.add("imported", main, target, [words, matched])
    hosts = list(config.get("ignore_hosts") or ())
    hosts += ["localhost", "127.0.0.1", "::1"] if config.get("ignore_localhost") else []
    # Cassettes are older than today's clients, which write JSON with other spaces.
    return target, {"match": ["json"], "allow": hosts}


def _interactions(loaded: list[object]) -> Iterator[Any]:
    for cassette in loaded:
        held = cassette.get("interactions") if isinstance(cassette, dict) else None
        yield from held if isinstance(held, list) else ()


def _config(item: Any) -> dict[str, Any]:
    config: dict[str, Any] = dict(_fixture(item, "vcr_config") or {})
    for mark in reversed(list(item.iter_markers("vcr"))):
        config |= mark.kwargs
    return config


def _paths(item: Any, config: dict[str, Any]) -> Iterator[Path]:
    """Yield the files of a test: its own, and those that its marks name."""
    folder = Path(
        config.get("cassette_library_dir")
        or _fixture(item, "vcr_cassette_dir")
        or item.path.parent / "cassettes" / item.path.stem
    )
    suffix = f".{config.get('serializer', 'yaml')}"
    name = _shortened(_name(item), suffix)
    yield folder / (name if name.endswith(suffix) else name + suffix)
    for mark in item.iter_markers("vcr"):
        for extra in mark.args:
            yield folder / extra


def _name(item: Any) -> str:
    if (named := item.get_closest_marker("default_cassette")) is not None and named.args:
        return str(named.args[0])
    if given := _fixture(item, "default_cassette_name"):
        return str(given)
    of_class = f"{item.cls.__name__}." if getattr(item, "cls", None) else ""
    return f"{of_class}{item.name}".translate(_FORBIDDEN)


def _shortened(name: str, suffix: str) -> str:
    """Return a name that a file can have, as pytest-recording shortens it."""
    if len(name) + len(suffix) <= _LONGEST:
        return name
    digest = md5(name.encode(), usedforsecurity=False).hexdigest()
    return f"{name[: _LONGEST - len(suffix) - len(digest) - 3]}...{digest}"


def _fixture(item: Any, name: str) -> Any:
    """Return the value of a fixture of the suite, or of pytest-recording; None without one."""
    request: Any = getattr(item, "_request", None)
    try:
        return None if request is None else request.getfixturevalue(name)
    except pytest.FixtureLookupError:
        return None

"""The tools people know, each used as its own documentation says.

One of them is a distribution of another owner whose import name and console script are both
`tracefork`. The script would overwrite ours, so the peers have a virtual environment of their own.
`install` makes it below the running one, with the same versions of the clients.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recorders import Clients, PlainClients, Recorder

if TYPE_CHECKING:
    import httpx2

PINS = ("tracefork==1.0.0", "forkline==0.5.0", "vcrpy==9.4.2", "timefork==0.3.3")
_SHARED = ("httpx", "httpx2", "openai")
_OLDEST_PYTHON = (3, 12)

IN_MEMORY = "tracefork 1.0.0"
CRASH_SAFE = "tracefork 1.0.0, crash-safe"
VCR = "vcrpy 9.4.2"
VCR_BODY = "vcrpy 9.4.2, body matched"
TIMEFORK = "timefork 0.3.3"
"""It records through a proxy, so only its report is measured."""
FORKLINE = "forkline 0.5.0"
"""It does not record HTTP, so only its start is measured."""


def install() -> Path:
    """Make the environment of the peers if it does not exist, and return its interpreter.

    Raises:
        RuntimeError: this Python is too old for them.
        subprocess.CalledProcessError: they could not be installed.
    """
    if sys.version_info < _OLDEST_PYTHON:
        raise RuntimeError("The peers need Python 3.12: use that, or pass --no-peers.")
    home = Path(sys.prefix) / "peers"
    python = home / "bin" / "python"
    wanted = "\n".join([*PINS, *(f"{name}=={version(name)}" for name in _SHARED)])
    installed = home / "installed.txt"
    if not installed.is_file() or installed.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *wanted.split()], check=True)
        installed.write_text(wanted)
    return python


class _TransportClients:
    """Clients of a peer whose recorder is a transport that you pass in."""

    def __init__(self, mode: str, tape: Any, on_exchange: Callable[..., None] | None) -> None:
        self._mode = mode
        self._tape = tape
        self._on_exchange = on_exchange

    def sync(self, transport: httpx2.BaseTransport | None = None) -> httpx2.Client:
        import httpx2
        from tracefork import TraceforkTransport  # type: ignore[import-not-found]

        inner = None if self._mode == "replay" else transport or httpx2.HTTPTransport()
        seam = TraceforkTransport(self._mode, self._tape, inner, on_exchange=self._on_exchange)
        return httpx2.Client(transport=seam)

    def asynchronous(self) -> httpx2.AsyncClient:
        import httpx2
        from tracefork import AsyncTraceforkTransport

        inner = httpx2.AsyncHTTPTransport()
        return httpx2.AsyncClient(transport=AsyncTraceforkTransport(self._mode, self._tape, inner))


class Tracefork:
    """The peer of the same name, which saves at the end of a run unless `crash_safe`."""

    def __init__(self, *, crash_safe: bool) -> None:
        self._crash_safe = crash_safe

    @contextmanager
    def record(self, path: Path) -> Iterator[Clients]:
        from tracefork import Tape
        from tracefork.checkpoint import (  # type: ignore[import-not-found]
            CheckpointWriter,
        )

        tape = Tape()
        if not self._crash_safe:
            yield _TransportClients("record", tape, None)
            tape.save(str(path))
            return
        writer = CheckpointWriter(str(path), agent_name="benchmark", boundary=tape.boundary)
        yield _TransportClients("record", tape, writer.append_exchange)
        writer.finalize(tape)

    @contextmanager
    def replay(self, path: Path) -> Iterator[Clients]:
        from tracefork import Tape

        yield _TransportClients("replay", Tape.load(str(path)), None)


class Vcr:
    """vcrpy, which matches method and URI by default, and bodies on request."""

    def __init__(self, *, match_bodies: bool) -> None:
        self._match_on = ["method", "uri", "body"] if match_bodies else ["method", "uri"]

    @contextmanager
    def record(self, path: Path) -> Iterator[Clients]:
        with self._cassette(path, "all"):
            yield PlainClients()

    @contextmanager
    def replay(self, path: Path) -> Iterator[Clients]:
        with self._cassette(path, "none"):
            yield PlainClients()

    def _cassette(self, path: Path, mode: str) -> Any:
        import vcr  # type: ignore[import-untyped]

        recorder = vcr.VCR(record_mode=mode, match_on=self._match_on)
        return recorder.use_cassette(f"{path}.yaml")


PEERS: dict[str, Callable[[], Recorder]] = {
    IN_MEMORY: lambda: Tracefork(crash_safe=False),
    CRASH_SAFE: lambda: Tracefork(crash_safe=True),
    VCR: lambda: Vcr(match_bodies=False),
    VCR_BODY: lambda: Vcr(match_bodies=True),
}

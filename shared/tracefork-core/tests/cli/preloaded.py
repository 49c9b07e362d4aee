"""A Python process that has loaded the command line, and forks for each command.

A short command spends most of its time with imports that all commands share, and a small agent
spends it with those of its client. Each command is still a process of its own, and starts as
`python -m tracefork_core.cli.main` would, except that the libraries of most agents are loaded
before the session instead of in it. test_preloaded.py proves that both give the same tapes. A
command with other values in variables that Python reads when it starts gets a new Python.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any, NoReturn

import httpx2

from tracefork_core.cli.command_table import WITH_AGENT

MAIN = "tracefork_core.cli.main"
LOADED = [
    "tracefork_core.cli.display.account",
    "tracefork_core.cli.display.timeline",
    "tracefork_core.run.fork",
    "tracefork_core.run.record",
    "tracefork_core.run.replay",
    "dateutil.parser",
    "openai.resources.chat.completions",
    "tomllib",
    "unittest",
]
"""What most commands load, tracefork's own and what time-machine and openai need."""
_OF_THE_START = ("PYTHON", "LANG", "LC_", "TZ", "COVERAGE")
_LONGEST = 1 << 20


class Preloaded:
    """Runs commands one at a time; its Python starts with the first command.

    Args:
        more: variables that its Python has beside those of this process.
    """

    def __init__(self, **more: str) -> None:
        self._more = more
        self._started: _Waiting | None = None

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The waiting Python, if it has started."""
        return self._started.process if self._started else None

    def run(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command in a folder, with an empty stdin, and return its result.

        Raises:
            RuntimeError: the waiting Python has died.
        """
        started = self._started
        own = {**os.environ, **self._more}
        known = started.environment if started else _of_the_start(own)
        if _of_the_start(environment) != known:
            return subprocess.run(
                [sys.executable, "-m", MAIN, *words],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        waiting = started or _start(own)
        self._started = None  # Until it has answered: after an interrupt, start a new one.
        outs, errs = os.pipe(), os.pipe()
        command = {"words": words, "folder": str(folder), "environment": dict(environment)}
        with contextlib.suppress(BrokenPipeError):  # Then `status` finds no answer either.
            socket.send_fds(waiting.asked, [json.dumps(command).encode()], [outs[1], errs[1]])
        os.close(outs[1])
        os.close(errs[1])
        out, err = _read(outs[0], errs[0])
        status = waiting.status()
        self._started = waiting
        return subprocess.CompletedProcess(list(words), status, out, err)

    def close(self) -> None:
        """End the waiting Python."""
        if self._started:
            self._started.asked.close()
            self._started.process.wait()
            self._started = None


@dataclass(frozen=True)
class _Waiting:
    """The waiting Python, its pipes, and the environment that it read when it started."""

    process: subprocess.Popen[bytes]
    asked: socket.socket
    environment: dict[str, str]

    def status(self) -> int:
        """Return the exit status that it reports."""
        with contextlib.suppress(ConnectionError):
            if answer := self.asked.recv(_LONGEST):
                return int(answer)
        self.asked.close()
        raise RuntimeError(
            f"The Python that waits for commands has died (exit status {self.process.wait()}). "
            "Its stderr above has the reason."
        )


def _of_the_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in environment.items() if name.startswith(_OF_THE_START)}


def _start(own: Mapping[str, str]) -> _Waiting:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    code = f"import runpy; runpy.run_path({__file__!r})['serve']({theirs.fileno()})"
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=own,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    return _Waiting(process, ours, _of_the_start(own))


def _read(*pipes: int) -> list[bytes]:
    """Read pipes until their other ends are closed."""
    found = [b""] * len(pipes)

    def read(place: int) -> None:
        with open(pipes[place], "rb") as pipe:  # noqa: PTH123 - a descriptor, not a path
            found[place] = pipe.read()

    readers = [Thread(target=read, args=(place,)) for place in range(len(pipes))]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    return found


def serve(descriptor: int) -> None:
    """Load what every command loads, and fork for each request."""
    _load()
    asked = socket.socket(fileno=descriptor)
    while True:
        text, descriptors, *_ = socket.recv_fds(asked, _LONGEST, 2)
        if not text:
            return
        if (child := os.fork()) == 0:
            asked.close()
            _become(json.loads(text), *descriptors)
        for one in descriptors:
            os.close(one)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(BrokenPipeError):
            asked.send(str(os.waitstatus_to_exitcode(status)).encode())


def _load() -> None:
    """Load what parses arguments, reads tapes and runs agents, with a command of no effect."""
    command_line = import_module(MAIN)
    commands = [f"tracefork_core.cli.commands.{name}" for name in command_line.SUMMARIES]
    for name in LOADED + commands:
        import_module(name)
    with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stdout(io.StringIO()):
        assert command_line.main(["ls", empty]) == 0
    httpx2.Client(verify=False).close()  # The first one imports its transport.
    del sys.modules[MAIN]  # Each fork loads it from its file, as Python does.
    gc.freeze()  # A fork need not collect these, not even when it ends.


def _become(command: dict[str, Any], out: int, err: int) -> NoReturn:
    """Turn this fork into a Python that was started with a command."""
    for given, place in ((out, 1), (err, 2)):
        os.dup2(given, place)
        os.close(given)
    os.chdir(command["folder"])
    os.environ.clear()
    os.environ.update(command["environment"])
    sys.orig_argv[1:] = ["-m", MAIN, *command["words"]]
    sys.argv[1:] = command["words"]
    sys.path[0] = command["folder"]
    try:
        runpy.run_module(MAIN, run_name="__main__", alter_sys=True)
    except SystemExit as exit_:
        if not WITH_AGENT.intersection(command["words"][:1]):
            _leave(exit_)
        raise
    sys.exit()


def _leave(exit_: SystemExit) -> None:
    """End a command that ran no agent, without taking apart what it shares with this process."""
    with contextlib.suppress(OSError, ValueError):  # Python reports it while it exits.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(exit_.code or 0))

"""The processes of a run, one per recorder and provider, and rounds that take turns."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

Samples = dict[str, list[float]]
Rounds = dict[str, list[Samples]]

_HERE = Path(__file__).parent


@dataclass(slots=True)
class Bench:
    """The processes and settings that measurements share.

    Args:
        python: the interpreter each recorder runs under, by name.
        folder: where tapes go; on the disk that is measured.
        quick: fewer rounds and smaller cases.
    """

    python: dict[str, Path]
    folder: Path
    quick: bool
    _stack: ExitStack
    _workers: dict[str, _Worker] = field(default_factory=dict)
    _providers: dict[float, str] = field(default_factory=dict)
    _files: int = 0

    def provider(self, chunk_delay: float = 0.0) -> str:
        """Return the URL of a provider process that waits `chunk_delay` seconds between events."""
        if chunk_delay not in self._providers:
            url = self._stack.enter_context(_provider(chunk_delay))
            self._providers[chunk_delay] = url
        return self._providers[chunk_delay]

    def path(self) -> str:
        """Return an unused path for a tape."""
        self._files += 1
        return str(self.folder / f"{self._files}.tape")

    def ask(self, who: str, task: Callable[..., Samples], **arguments: object) -> Samples:
        """Run a task of a measurement in the process of a recorder.

        Raises:
            RuntimeError: the task failed there; the message holds its traceback.
        """
        if who not in self._workers:
            worker = _Worker(self.python[who], who, self.folder)
            self._stack.callback(worker.stop)
            self._workers[who] = worker
        return self._workers[who].ask(task, arguments)

    def present(self, *who: str) -> list[str]:
        """Return those of the named recorders that are measured in this run."""
        return [name for name in who if name in self.python]

    def rounds(self, n: int, who: Iterable[str], one: Callable[[str], Samples]) -> Rounds:
        """Run `one` n times for each recorder, in a new order each round, after a warm-up round."""
        order = list(who)
        found: Rounds = {name: [] for name in order}
        for i in range(n + 1):
            random.Random(i).shuffle(order)
            for name in order:
                samples = one(name)
                if i:
                    found[name].append(samples)
        return found


@contextmanager
def opened(python: dict[str, Path], folder: Path, *, quick: bool) -> Iterator[Bench]:
    """Yield a bench and end its processes."""
    with ExitStack() as stack:
        yield Bench(python, folder, quick, stack)


class _Worker:
    def __init__(self, python: Path, who: str, folder: Path) -> None:
        self._who = who
        self._process = subprocess.Popen(
            [python, _HERE / "worker.py", who],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
            env={**clean_environment(), "PYTHONHASHSEED": "0"},
        )

    def ask(self, task: Callable[..., Samples], arguments: dict[str, object]) -> Samples:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"module": task.__module__, "task": task.__name__, "arguments": arguments}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "its process died"}')
        if "error" in answer:
            raise RuntimeError(f"{self._who} failed at {asked}:\n{answer['error']}")
        samples: Samples = answer["samples"]
        return samples

    def stop(self) -> None:
        self._process.communicate()  # It ends when its input does.


@contextmanager
def _provider(chunk_delay: float) -> Iterator[str]:
    command = [sys.executable, "-m", "tracefork_testkit.server", "--until-eof"]
    process = subprocess.Popen(
        [*command, "--chunk-delay", str(chunk_delay)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=clean_environment(),
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.communicate()


def clean_environment() -> dict[str, str]:
    """Return the environment without variables that slow imports down or set a proxy."""
    unwanted = ("PYTHONDONTWRITEBYTECODE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {name: value for name, value in os.environ.items() if name.upper() not in unwanted}


def command(python: Path, folder: Path, *words: str) -> tuple[str, float]:
    """Run the `tracefork` beside an interpreter; return what it prints, and its seconds of CPU.

    Raises:
        RuntimeError: it ended with neither 0 nor 1.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [python.with_name("tracefork"), *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env=clean_environment(),
    )
    if ended.returncode not in (0, 1):
        raise RuntimeError(f"tracefork {' '.join(words)} failed:\n{ended.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ended.stdout, worked

"""A process that replays one tape after another, each in a fork of itself.

Most of a replay's time is spent on loading libraries. This process loads them once: those that the
agent's own files import, and those that the first replay loaded besides. It never loads a module of
the agent, so that each replay runs the agent's code from its beginning. It also opens and closes a
session once: to look for patched functions in a thousand modules takes as long as the rest of a
short replay, and a fork inherits what was found.

A fork is as good as a fresh process for what a replay proves, because the digest has to come out
the same; and what does not come out the same is tried again in a fresh one.

It reads one job per line on stdin and answers with one line on stdout.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from io import FileIO
from pathlib import Path
from sysconfig import get_paths

import msgspec

from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.gate.namespace import close_network

_MOST_FILES = 200


class Setup(msgspec.Struct, frozen=True):
    """The first line: whether to close the network."""

    closed: bool


class Ready(msgspec.Struct, frozen=True):
    """The answer to it: whether the kernel keeps the network closed."""

    closed: bool


class Job(msgspec.Struct, frozen=True):
    """A replay: its words, its agent and folder, and the files for its output.

    `fresh` forbids a fork.
    """

    words: list[str]
    form: str
    target: str
    folder: str
    stdout: str
    stderr: str
    fresh: bool = False


class Done(msgspec.Struct, frozen=True):
    """How a replay ended; a negative status is that of a signal."""

    status: int


def main() -> None:
    """Serve until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # What a library prints while it is loaded is no answer.
    lines = iter(sys.stdin.buffer)
    setup = msgspec.json.decode(next(lines), type=Setup)
    closed = setup.closed and close_network()
    answers.write(msgspec.json.encode(Ready(closed)) + b"\n")
    loaded: set[tuple[str, str, str]] = set()
    for line in lines:
        job = msgspec.json.decode(line, type=Job)
        agent = job.folder, job.form, job.target
        if agent not in loaded and not job.fresh:
            _load(job)
            loaded.add(agent)
        if job.fresh or _has_threads():
            status = _fresh(job)
        else:
            status = _forked(job, learned := Path(f"{job.stdout}.modules"), answers)
            if learned.is_file():
                _import(json.loads(learned.read_bytes()))
        answers.write(msgspec.json.encode(Done(status)) + b"\n")


def _load(job: Job) -> None:
    """Load tracefork's modules for a replay, and the libraries that the agent's files import."""
    for name in ("replay", "app", "card"):
        with suppress(ImportError):
            import_module(f"tracefork_core.cli.commands.{name}")
    for name in ("run.replay", "seams", "cli.display.card", "cli.display.account", "providers"):
        import_module(f"tracefork_core.{name}")
    _import(libraries(Path(job.folder), job.form, job.target))


def _import(names: list[str]) -> None:
    """Import modules of libraries; the replay says what is wrong with one that fails."""
    for name in names:
        if name not in sys.modules:
            with suppress(Exception):
                import_module(name)
    _rehearse()
    gc.collect()
    gc.freeze()


def _rehearse() -> None:
    """Open and close a session."""
    from tracefork_core.run.record import record

    with (
        tempfile.TemporaryDirectory(prefix="tracefork-ci-") as place,
        warnings.catch_warnings(action="ignore"),
        record(Path(place, "rehearsal.tape")),
    ):
        pass


def libraries(folder: Path, form: str, target: str) -> list[str]:
    """Return the installed modules that an agent's own files import at their top."""
    module = target.partition(":")[0]
    first = folder / target if form == "script" else None
    roots = [folder, *([first.parent] if first else [])]
    waiting = [first] if first else _files(module, roots)
    seen: set[Path] = set()
    found: dict[str, None] = {}
    while waiting and len(seen) < _MOST_FILES:
        file = waiting.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        for name in _imported(file):
            own = _files(name, roots)
            if own:
                waiting += own
            elif _is_installed(name):
                found[name] = None
    return list(found)


def _imported(file: Path) -> list[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return names


def _files(module: str, roots: list[Path]) -> list[Path]:
    """Return the files of a module of the agent itself."""
    places = [root.joinpath(*module.split(".")) for root in roots]
    files = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
    return [file for file in files if file.is_file()]


def _is_installed(name: str) -> bool:
    """Return whether a module comes from a library, and not from the agent."""
    top = name.partition(".")[0]
    return top.startswith("tracefork_") or _is_of_a_library(top)


@cache
def _is_of_a_library(top: str) -> bool:
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return False
    if spec is None or spec.origin in (None, "built-in", "frozen"):
        return False
    paths = get_paths()
    kept = (paths["purelib"], paths["platlib"], paths["stdlib"])
    return any(Path(str(spec.origin)).is_relative_to(place) for place in kept)


def _has_threads() -> bool:
    """Return whether a library has started threads, which a fork would leave behind half-way."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) > 1 if tasks.is_dir() else threading.active_count() > 1


def _forked(job: Job, learned: Path, answers: FileIO) -> int:
    """Replay in a fork of this process, which leaves the names of what it loaded besides."""
    before = set(sys.modules)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return _wait(child)
    code = 70
    try:
        answers.close()  # The check sees that this process has ended, even if the agent lives on.
        _redirect(job)
        os.chdir(job.folder)
        sys.argv = ["tracefork", *job.words]
        sys.path[0] = job.folder
        os.environ[hash_seed.ONCE] = "1"  # This process has the seed of the tape already.
        from tracefork_core.cli.main import main as command

        code = command()
        sys.stdout.flush()
        sys.stderr.flush()
        besides = [name for name in set(sys.modules) - before if _is_installed(name)]
        if besides:
            learned.write_text(json.dumps(sorted(besides)))
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        os._exit(code)  # What is behind this function in the parent is not the child's.


def _redirect(job: Job) -> None:
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    for descriptor, path in ((1, job.stdout), (2, job.stderr)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)


def _fresh(job: Job) -> int:
    words = [sys.executable, "-m", "tracefork_core.cli.main", *job.words]
    with Path(job.stdout).open("wb") as out, Path(job.stderr).open("wb") as err:
        process = subprocess.Popen(  # noqa: S603 - our own command line
            words, cwd=job.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        process.returncode = _wait(process.pid)
    return process.returncode


def _wait(child: int) -> int:
    """Wait for a replay; kill it if the check ends first, which closes stdin."""
    if sys.platform == "linux":
        with suppress(OSError):  # An old kernel has no such call.
            ended = os.pidfd_open(child)
            ready, _, _ = select.select([ended, 0], [], [])
            os.close(ended)
            if ended not in ready:
                os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main()

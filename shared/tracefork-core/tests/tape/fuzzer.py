"""Read mutants of tapes in a process of its own, within bounds, and report what went wrong.

    python fuzzer.py ORIGINALS FIRST STEP END [crash | hang | eat | raise | escape | write]

The number of each mutant is printed before it is read. So the parent knows which one killed this
process: by a crash, or by SIGPROF, which ends a read that takes too long.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import mutants  # type: ignore[import-not-found]  # this is a script: its folder is on the path

from tracefork_core import DivergenceError, Tape, TraceforkError, replay
from tracefork_core.blaming.trials.units import Run
from tracefork_core.cli import main as cli
from tracefork_core.tape.integrity import check_integrity

SECONDS = 2.0
MEMORY = 256 * 1024 * 1024
_EXITS = (0, 2, 5)
_PAGES = 3


class Finding(Exception):
    """A forbidden effect of reading a file."""


@contextlib.contextmanager
def bounds() -> Iterator[None]:
    """Limit the block to 2 s of processor time and 256 MB of memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def attempts(path: Path, number: int) -> list[Callable[[], object]]:
    """Return one function for each way to read a tape, and for one of the commands."""

    def reading(read: Callable[[Tape], object]) -> Callable[[], object]:
        def attempt() -> None:
            with Tape.open(path) as tape:
                read(tape)

        return attempt

    def bodies(tape: Tape) -> None:
        for exchange in tape.exchanges:
            with contextlib.suppress(TraceforkError):
                _ = exchange.request_body, exchange.response_body
            with contextlib.suppress(TraceforkError):
                _ = exchange.chunks
            _ = exchange.response_headers, exchange.request_headers, exchange.url, exchange.reason

    def paths(tape: Tape) -> None:
        for step in tape.steps:
            tape.step_path(step.id)

    views: list[tuple[str, ...]] = [
        ("ls", str(path.parent)),
        ("ls", "--json", str(path.parent)),
        ("show", str(path)),
        ("show", "--json", str(path)),
        *(("show", str(path), str(n)) for n in range(_PAGES)),
        ("show", "--json", str(path), "1"),
        ("verify", "--integrity", str(path)),
        ("tree", str(path)),
        ("tree", "--json", str(path)),
    ]
    return [
        reading(bodies),
        reading(paths),
        reading(lambda tape: tape.draws),
        reading(lambda tape: (tape.receipt, tape.environment)),
        reading(lambda tape: tape.digest),
        reading(lambda tape: tape.branch),
        reading(Run.of),
        reading(lambda tape: (tape.events, tape.blobs)),
        lambda: check_integrity(path),
        lambda: replayed(path),
        lambda: typed(*views[number % len(views)]),
    ]


def replayed(path: Path) -> None:
    with contextlib.suppress(DivergenceError), replay(path):
        pass


def typed(*words: str) -> None:
    """Run a command, and check that its output cannot drive a terminal."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(words)
    if code not in (*_EXITS, None):
        raise Finding(f"{words[0]} exits with {code}: {err.getvalue()}")
    for text in (out.getvalue(), err.getvalue()):
        bad = {char for char in text if not char.isprintable() and char != "\n"}
        if bad:
            raise Finding(f"{words} prints {bad!r}")
    if words[0] == "ls" and "Error: " in out.getvalue():
        raise Finding(f"ls: {out.getvalue()}")


def findings(path: Path, number: int) -> Iterator[str]:
    """Yield everything that went wrong while one tape was read in every way."""
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    for place, attempt in enumerate(attempts(path, number)):
        try:
            with bounds():
                attempt()
        except TraceforkError:
            continue
        except BaseException:
            yield f"attempt {place}: {traceback.format_exc(limit=-6)}"
    after = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    after.pop(f"{path.name}-shm", None)  # Which SQLite makes to read a log that is still there.
    if after != before and before.keys() <= after.keys():
        yield f"files: {sorted(before)} before, {sorted(after)} after reading"


def main(originals: Path, first: int, step: int, end: int) -> None:
    faulthandler.enable()
    os.environ |= {"TRACEFORK_TRACEBACK": "1", "COLUMNS": "100", "NO_COLOR": "1"}
    folders = sorted(originals.iterdir())
    found = [
        {file.name.removeprefix("run.tape"): file.read_bytes() for file in folder.iterdir()}
        for folder in folders
    ]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRACEFORK_HOME"] = str(originals)
        for number in range(first, end, step):
            print(number, flush=True)
            kind, files = mutants.mutant(found[number % len(found)], number)
            for suffix, data in files.items():
                Path(folder, f"run.tape{suffix}").write_bytes(data)
            for finding in findings(Path(folder, "run.tape"), number):
                said = {"original": folders[number % len(found)].name, "kind": kind}
                print(json.dumps({"number": number, **said, "what": finding}), flush=True)
            for file in Path(folder).iterdir():
                file.unlink()


def misbehave(how: str) -> None:
    """Do something forbidden, so that a test can check that the fuzzer reports it."""
    wrongs: dict[str, Callable[[Path], object]] = {
        "crash": lambda path: os.kill(os.getpid(), signal.SIGSEGV),
        "hang": lambda path: sum(1 for _ in iter(int, 1)),
        "eat": lambda path: bytes(2 * MEMORY),
        "raise": lambda path: os.environ["NO_SUCH_VARIABLE"],
        "escape": lambda path: setattr(cli, "main", lambda words: print("\x1b[2J")),
        "write": lambda path: path.with_name("beside").touch(),
    }
    globals()["check_integrity"] = wrongs[how]


if __name__ == "__main__":
    if len(sys.argv) > 5:
        misbehave(sys.argv[5])
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))

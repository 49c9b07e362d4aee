"""Run commands of tracefork, each in a process of its own, and measure what each one took.

    python looker.py JOBS

JOBS is a file of JSON: a list of {"words": […], "environment": {…}, "folder": …}. For each job
one line of JSON is printed: its exit, seconds of processor time, bytes of memory, and its errors.

This process loads the commands, and forks for each job: to start Python takes longer than most
commands do.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from tracefork_core.cli import main as cli
from tracefork_core.cli.command_table import SUMMARIES

_PATIENCE = 20
"""Seconds of real time, in which a command may wait for the processes that it starts."""
_MOST = 10
"""Seconds of processor time."""
_ENOUGH = 3 * 2**30


def measured(job: dict[str, object]) -> dict[str, object]:
    """Run one job and return what it took."""
    before = _resident()
    with tempfile.TemporaryFile() as said:
        if (pid := os.fork()) == 0:
            _run(job, said.fileno())
        _, status, used = os.wait4(pid, 0)
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    return {
        "exit": os.waitstatus_to_exitcode(status),
        "seconds": used.ru_utime + used.ru_stime,
        "bytes": used.ru_maxrss * 1024 - before,
        "said": len(text),
        "text": text[-1000:],
    }


def _run(job: dict[str, object], said: int) -> None:
    code = 99
    try:
        signal.alarm(_PATIENCE)
        signal.setitimer(signal.ITIMER_PROF, _MOST)
        resource.setrlimit(resource.RLIMIT_AS, (_ENOUGH, _ENOUGH))
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(said, 2)
        os.environ.update(job["environment"])  # type: ignore[call-overload]
        os.chdir(str(job["folder"]))
        sys.argv = ["tracefork", *job["words"]]  # type: ignore[misc]
        code = cli.main(job["words"]) or 0  # type: ignore[arg-type]
        sys.stderr.flush()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 98
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def main(jobs: Path) -> None:
    for name in SUMMARIES:
        import_module(f"tracefork_core.cli.commands.{name}")
    for job in json.loads(jobs.read_text()):
        print(json.dumps(measured(job)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

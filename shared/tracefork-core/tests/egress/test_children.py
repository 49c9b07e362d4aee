"""Python child processes carry the guard, other programs are named."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import venv
from collections.abc import Callable
from contextlib import AbstractContextManager
from ctypes.util import find_library
from multiprocessing.context import ForkProcess, SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path

import distro
import pytest

from tracefork_core import EgressError, Tape, record, replay

from .conftest import Listener

CODE = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"


def plain(listener: Listener) -> None:
    subprocess.run([sys.executable, "-c", CODE, str(listener.port)], check=False)


def with_an_environment(listener: Listener) -> None:
    command = [sys.executable, "-c", CODE, str(listener.port)]
    subprocess.run(command, env={"PATH": os.environ["PATH"]}, check=False)


def by_shell(listener: Listener) -> None:
    subprocess.run(f'"{sys.executable}" -c "{CODE}" {listener.port}', shell=True, check=False)


def grandchild(listener: Listener) -> None:
    inner = [sys.executable, "-c", CODE, str(listener.port)]
    subprocess.run(
        [sys.executable, "-c", f"import subprocess; subprocess.run({inner})"], check=False
    )


def by_multiprocessing(method: str) -> Callable[[Listener], None]:
    def start(listener: Listener) -> None:
        target, args = socket.create_connection, (listener.address,)
        if method == "spawn":
            child: BaseProcess = SpawnProcess(target=target, args=args)
        else:
            child = ForkProcess(target=target, args=args)
        child.start()
        child.join()

    start.__name__ = method
    return start


WAYS = [
    plain,
    with_an_environment,
    by_shell,
    grandchild,
    by_multiprocessing("spawn"),
    by_multiprocessing("fork"),
]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_python_child_is_refused_and_the_parent_says_so(
    way: Callable[[Listener], None], empty: Path, listener: Listener
) -> None:
    """The connection fails in the child, and the parent's block raises the error too."""
    with pytest.raises(EgressError, match="tried to reach"), replay(empty):
        way(listener)
    assert listener.accepted == 0


def test_the_same_child_connects_without_a_session(listener: Listener) -> None:
    """The negative control: only the session refused it."""
    plain(listener)
    assert listener.accepted == 1


def test_a_child_of_another_environment_is_refused(
    empty: Path, listener: Listener, tmp_path: Path
) -> None:
    """A Python without tracefork installed carries the guard too."""
    venv.create(tmp_path / "other", with_pip=False)
    python = str(tmp_path / "other" / "bin" / "python")
    with pytest.raises(EgressError), replay(empty):
        subprocess.run([python, "-c", CODE, str(listener.port)], check=False)
    assert listener.accepted == 0


def test_a_childs_own_sitecustomize_still_runs(empty: Path, tmp_path: Path) -> None:
    """Python finds the guard's sitecustomize first, which then runs the hidden one."""
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.mine = 'ran'")
    command = [sys.executable, "-c", "print(mine)"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with replay(empty):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "ran\n"


def test_a_childs_own_connection_is_counted_while_recording(tape: Path, listener: Listener) -> None:
    """The parent's receipt lists the hosts that a Python child reached."""
    with record(tape) as run:
        plain(listener)
    assert run.receipt is not None
    assert run.receipt.strays == [f"127.0.0.1:{listener.port}"]
    assert listener.accepted == 1


def test_a_recording_names_a_program_without_the_guard(tape: Path) -> None:
    """The receipt lists curl, which cannot carry the guard."""
    with record(tape) as run:
        subprocess.run(["curl", "--version"], stdout=subprocess.DEVNULL, check=True)
        subprocess.run("curl --version > /dev/null", shell=True, check=True)
    assert run.receipt is not None
    assert run.receipt.subprocesses == ["curl", "curl"]
    with Tape.open(tape) as written:
        assert written.receipt == run.receipt


def test_programs_that_python_starts_to_query_the_machine_do_not_count(tape: Path) -> None:
    """Importing some libraries starts `ldconfig`; an agent that starts it itself is refused."""
    with record(tape, subprocesses=False) as run:
        assert find_library("c") is not None
    assert run.receipt is not None
    assert run.receipt.subprocesses == []
    with replay(tape, subprocesses=False):
        find_library("c")
    scope = replay(tape, subprocesses=False)
    with pytest.raises(EgressError, match="tried to start ldconfig"), scope:
        subprocess.run(["/sbin/ldconfig", "-p"], check=False)


def test_programs_that_sdks_start_to_query_the_machine_do_not_count(tape: Path) -> None:
    """SDKs report the Linux they run on, which they learn from `lsb_release` and `uname`."""

    def ask() -> None:
        machine = distro.LinuxDistribution()
        machine.lsb_release_info()
        machine.uname_info()

    with record(tape, subprocesses=False) as run:
        ask()
    assert run.receipt is not None
    assert run.receipt.subprocesses == []
    with replay(tape, subprocesses=False):
        ask()


@pytest.mark.parametrize("mode", ["record", "replay"])
def test_curl_is_refused_when_programs_are_ruled_out(
    mode: str, tape: Path, listener: Listener
) -> None:
    """With `subprocesses=False` no other program starts, in either mode."""
    if mode == "replay":
        with record(tape, clock=False):
            pass
        scope: AbstractContextManager[object] = replay(tape, subprocesses=False)
    else:
        scope = record(tape, subprocesses=False)
    with pytest.raises(EgressError, match="tried to start curl"), scope:
        subprocess.run(["curl", "-s", listener.url], check=False)
    assert listener.accepted == 0


def test_a_python_that_ignores_the_guard_counts_as_another_program(
    empty: Path, listener: Listener
) -> None:
    """`python -I` does not load the guard, so `subprocesses=False` refuses it."""
    command = [sys.executable, "-I", "-c", "pass"]
    with pytest.raises(EgressError, match="tried to start python"):
        with replay(empty, subprocesses=False):
            subprocess.run(command, check=False)


def test_the_block_restores_environment_and_popen(empty: Path) -> None:
    """After the block both are the same as before. Only process scope changes the environment."""
    before = dict(os.environ), subprocess.Popen.__init__
    with replay(empty):
        assert "TRACEFORK_EGRESS" not in os.environ
        assert subprocess.Popen.__init__ is not before[1]
    assert (dict(os.environ), subprocess.Popen.__init__) == before
    with replay(empty, scope="process"):
        assert "TRACEFORK_EGRESS" in os.environ
    assert (dict(os.environ), subprocess.Popen.__init__) == before

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tracefork_core import Tape
from tracefork_testkit import ProviderServer

from .conftest import Shell

PROBE = """\
import json, sys
print(json.dumps({
    "argv": sys.argv,
    "path": sys.path[0],
    "name": __name__,
    "file": __file__,
    "spec": __spec__ and __spec__.name,
    "package": __package__,
    "main": sys.modules["__main__"].__dict__ is globals(),
    "tested": "pytest" in sys.modules,
}))
"""


def test_a_script_has_the_module_globals_of_python(shell: Shell) -> None:
    """Its annotations are equal too."""
    shell.write("names.py", "x: int = 1\nprint(sorted(globals()), __annotations__)\n")
    done = shell.tracefork("record", "names.py")
    assert done.exit == 0, done.err
    assert done.out == shell.python("names.py").out


def test_a_script_has_the_argv_and_path_of_python(shell: Shell) -> None:
    """`__main__` and its attributes are equal too."""
    shell.write("sub/probe.py", PROBE)
    plain = shell.python("sub/probe.py", "a", "--flag")
    recorded = shell.tracefork("record", "sub/probe.py", "--", "a", "--flag")
    assert json.loads(recorded.out) == json.loads(plain.out)
    assert recorded.exit == 0


@pytest.mark.parametrize("module", ["pkg.probe", "pkg"])
def test_a_module_has_the_argv_and_path_of_python(shell: Shell, module: str) -> None:
    """It may be a package with a `__main__`."""
    shell.write("pkg/__init__.py", "")
    shell.write("pkg/probe.py", PROBE)
    shell.write("pkg/__main__.py", PROBE)
    plain = shell.python("-m", module, "a", "--flag")
    recorded = shell.tracefork("record", "-m", module, "--", "a", "--flag")
    assert json.loads(recorded.out) == json.loads(plain.out)


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_is_called_with_the_arguments(shell: Shell, kind: str) -> None:
    """Its module is imported from the current folder; an async function is awaited."""
    shell.write("pkg/calls.py", f"{kind} run(*words):\n    print('called with', words)\n")
    done = shell.tracefork("record", "--agent", "pkg.calls:run", "--", "x", "y")
    assert (done.exit, done.out) == (0, "called with ('x', 'y')\n")
    assert (shell.folder / "calls.tape").exists()


def test_an_exception_has_the_traceback_and_status_of_python(shell: Shell) -> None:
    """The tape is complete and names the exception."""
    shell.write("broken.py", "def fail():\n    raise ValueError('no')\nfail()\n")
    plain = shell.python("broken.py")
    done = shell.tracefork("record", "broken.py")
    assert done.exit == plain.exit == 1
    assert done.err.startswith(plain.err)
    with Tape.open(shell.folder / "broken.tape") as tape:
        assert tape.complete
        assert tape.receipt is not None
        assert tape.receipt.outcome == "ValueError"


@pytest.mark.parametrize(
    ("ending", "status", "stderr"),
    [
        ("sys.exit(7)", 7, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit('gone wrong')", 1, "gone wrong\n"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt\n"),
        ("1 +* 2", 1, "SyntaxError: invalid syntax\n"),
    ],
)
def test_the_exit_status_is_passed_on(shell: Shell, ending: str, status: int, stderr: str) -> None:
    """The agent's stderr is unchanged too."""
    shell.write("ends.py", f"import sys\n{ending}\n")
    done = shell.tracefork("record", "ends.py")
    assert done.exit == status
    said, _, _ = done.err.partition("● recorded")
    assert said.endswith(stderr)


def test_threads_pools_and_exit_handlers_are_recorded(
    shell: Shell, provider: ProviderServer
) -> None:
    """They run after the main thread, and belong to the run."""
    shell.write(
        "late.py",
        "import atexit, os, threading\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import httpx2\n"
        "def ask(word):\n"
        "    httpx2.post(os.environ['PROVIDER'] + '/echo', content=word)\n"
        "atexit.register(ask, b'exit')\n"
        "threading.Thread(target=ask, args=[b'thread']).start()\n"
        "ThreadPoolExecutor().submit(ask, b'pool')\n",
    )
    done = shell.tracefork("record", "late.py", "--json")
    assert done.document["exchanges"] == 3
    before = len(provider.requests)
    assert shell.tracefork("replay", "late.tape").exit == 0
    assert len(provider.requests) == before


def test_a_thread_that_ends_with_the_main_thread_ends(shell: Shell) -> None:
    """An exporter that polls the main thread must not block the end."""
    shell.write(
        "exports.py",
        "import atexit, threading, time\n"
        "main, begun = threading.main_thread(), time.monotonic()\n"
        "def export():\n"
        "    while main.is_alive() and time.monotonic() < begun + 30:\n"
        "        time.sleep(0.01)\n"
        "    print('ended' if not main.is_alive() else 'gave up', flush=True)\n"
        "threading.Thread(target=export).start()\n"
        "atexit.register(lambda: print(main.is_alive()))\n",
    )
    for command in (["record", "exports.py"], ["replay", "exports.tape"]):
        assert shell.tracefork(*command).out == "ended\nFalse\n"


def test_a_process_pool_without_shutdown_ends_with_the_program(shell: Shell) -> None:
    """Its workers are released before the thread that waits for them is joined."""
    shell.write(
        "pool.py",
        "import os\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "import httpx2\n"
        "def ask(word):\n"
        "    return httpx2.post(os.environ['PROVIDER'] + '/echo', content=word).text\n"
        "if __name__ == '__main__':\n"
        "    pool = ProcessPoolExecutor(1)\n"
        "    print(pool.submit(ask, b'pool').result())\n",
    )
    recorded = shell.tracefork("record", "pool.py")
    assert "1 exchange" in recorded.err
    replayed = shell.tracefork("replay", "pool.tape")
    assert (replayed.exit, replayed.out) == (0, recorded.out)


def test_record_overwrites_nothing_without_the_flag(shell: Shell) -> None:
    """A taken default name gets a number."""
    names = [shell.tracefork("record", "agent.py", "--json").document["tape"] for _ in range(2)]
    assert [Path(name).name for name in names] == ["agent.tape", "agent-2.tape"]
    refused = shell.tracefork("record", "-o", "agent.tape", "agent.py")
    assert (refused.exit, "agent.tape" in refused.err) == (2, True), refused.err
    assert "--overwrite" in refused.err
    assert shell.tracefork("record", "-o", "agent.tape", "--overwrite", "agent.py").exit == 0


def test_the_summary_shows_count_digest_coverage_and_next_command(shell: Shell) -> None:
    """The coverage names the subprocess."""
    shell.edit(
        "agent.py", "import httpx2\n", "import httpx2, subprocess\nsubprocess.run(['true'])\n"
    )
    done = shell.tracefork("record", "agent.py", "--", "a b", "c")
    assert done.out == "a b\nc\n"
    with Tape.open(shell.folder / "agent.tape") as tape:
        digest = tape.digest
    assert "● recorded agent.tape · 2 exchanges · 1 lane" in done.err
    assert f"digest {digest[:4]}…{digest[-4:]}" in done.err
    assert "captured 2 of 2 connections; 1 subprocess: true" in done.err
    assert "next: tracefork replay agent.tape agent.py -- 'a b' c" in done.err


def test_record_names_connections_it_could_not_capture(
    shell: Shell, provider: ProviderServer
) -> None:
    """A connection of a library without a seam is counted, and the summary names its target."""
    shell.write(
        "stray.py",
        "import os, urllib.request\nurllib.request.urlopen(os.environ['PROVIDER'] + '/echo')\n",
    )
    done = shell.tracefork("record", "stray.py")
    assert f"captured 0 of 1 connection; not captured: 127.0.0.1:{provider.port}" in done.err


def test_record_names_loaded_libraries_with_native_sockets(shell: Shell) -> None:
    """Their connections are not counted."""
    shell.write("zmq.py", "")
    shell.edit("agent.py", "import httpx2\n", "import httpx2\nif 'blind' in sys.argv: import zmq\n")
    words = "! not watched: sockets in native code (zmq)"
    blind = shell.tracefork("record", "-o", "blind.tape", "agent.py", "--", "blind")
    assert "captured 1 of 1 connection" in blind.err
    assert words in blind.err
    assert words in shell.tracefork("replay", "blind.tape", "agent.py", "--", "blind").err
    seeing = shell.tracefork("record", "-o", "seeing.tape", "agent.py")
    assert "not watched" not in seeing.err
    for command in (["record", "agent.py"], ["replay", "blind.tape", "agent.py"]):
        document = shell.tracefork(*command, "--json", "--", "blind").document
        assert document["blind_spots"] == ["zmq"]


def test_a_document_has_stdout_to_itself(shell: Shell) -> None:
    """With --json, the agent and its children print to stderr."""
    shell.edit(
        "agent.py", "import httpx2\n", "import httpx2, subprocess\nsubprocess.run(['echo', 'hi'])\n"
    )
    done = shell.tracefork("record", "agent.py", "--json")
    assert done.document["exit"] == 0
    assert done.document["exchanges"] == 2
    assert done.document["coverage"]["subprocesses"] == ["echo"]
    assert done.document["next"] == "tracefork replay agent.tape agent.py"
    assert "one" in done.err
    assert "hi" in done.err


def test_offline_refuses_connections(shell: Shell) -> None:
    """An agent that does not connect is recorded."""
    shell.write("quiet.py", "print('here')")
    shell.write("calls.py", "import socket; socket.create_connection(('127.0.0.1', 9))")
    assert shell.tracefork("record", "--offline", "quiet.py").exit == 0
    done = shell.tracefork("record", "--offline", "calls.py")
    assert done.exit == 4
    assert "calls.py:1 tried to reach 127.0.0.1:9" in done.err.replace("\n", " ")


def test_no_subprocess_refuses_programs(shell: Shell) -> None:
    """With --no-subprocess, starting a program ends the run with 4."""
    shell.write("starts.py", "import subprocess\nsubprocess.run(['true'])\n")
    done = shell.tracefork("record", "--no-subprocess", "starts.py")
    assert done.exit == 4
    assert "starts.py:2 tried to start true" in done.err
    assert "Traceback" not in done.err


def test_an_agent_that_was_killed_leaves_a_tape(shell: Shell) -> None:
    """The tape is incomplete, can be shown, and replays up to its end."""
    shell.write(
        "killed.py",
        "import os, signal, httpx\n"
        "for word in (b'one', b'two', b'three'):\n"
        "    print(httpx.post(os.environ['PROVIDER'] + '/echo', content=word).text)\n"
        "    if word == b'two' and 'KILL' in os.environ:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n",
    )
    assert shell.tracefork("record", "killed.py", KILL="yes").exit == -signal.SIGKILL
    (listed,) = shell.tracefork("ls", "--json").document["tapes"]
    assert (listed["state"], listed["exchanges"]) == ("incomplete", 2)
    assert "incomplete" in shell.tracefork("show", "killed.tape").out
    assert "incomplete" in shell.tracefork("verify", "--integrity", "killed.tape").out
    replayed = shell.tracefork("replay", "killed.tape", "killed.py")
    assert replayed.exit == 3
    assert replayed.out == "one\ntwo\n"
    assert "killed.tape is incomplete" in replayed.err


def test_the_card_names_a_clock_that_the_agent_replaced(shell: Shell) -> None:
    """And the document; the process does not crash, though the clock is replaced at its end."""
    shell.write("agent.py", "import time\n\ntime.time = lambda: 17.5\nprint(time.time())\n")
    done = shell.tracefork("record", "-o", "a.tape", "agent.py")
    assert (done.exit, done.out) == (0, "17.5\n")
    assert "put in place of time.time" in done.err
    document = shell.tracefork("record", "--json", "-o", "b.tape", "agent.py").document
    assert document["replaced"] == ["time.time"]

"""An attack through doors past the captured libraries: each is refused, named, or a known limit.

A door is a piece of a program. It connects to an address of its own, or starts a link to curl under
a name of its own, so one agent can try all of them and the receipt tells them apart.

`pytest -s shared/tracefork-core/tests/cli/test_doors.py` prints the figures that stand in
docs/explanation/how-it-is-tested.md.
"""

from __future__ import annotations

import shutil
import socket
import sys
import textwrap
import threading
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import Shell

HEAD = """\
import asyncio, ctypes, multiprocessing, os, pty, socket, subprocess, sys
import _posixsubprocess, _socket, _thread

def connect(address):
    with socket.create_connection((address, PORT), 5) as connection:
        connection.recv(1)

def tries(door):
    try:
        door()
    except BaseException as error:
        if os.getpid() != PROCESS:
            os._exit(1)

def fork_exec(words):
    fixed = True, (), None, None, *[-1] * 6, *os.pipe(), False, False, -1
    words = [word.encode() for word in words]
    start = _posixsubprocess.fork_exec
    os.waitpid(start(words, words[:1], *fixed, None, None, None, -1, None, True), 0)

PROCESS = os.getpid()
"""

REFUSED = {
    "socket": "connect(ADDRESS)",
    "socket.connect_ex": "socket.socket().connect_ex((ADDRESS, PORT))",
    "_socket": "_socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).connect((ADDRESS, PORT))",
    "a datagram": """
        socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", (ADDRESS, PORT))
        """,
    "sendmsg": "socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, (ADDRESS, PORT))",
    "a stream of asyncio": "asyncio.run(asyncio.open_connection(ADDRESS, PORT))",
    "a thread of _thread": """
        done = _thread.allocate_lock()
        done.acquire()
        def run():
            try:
                connect(ADDRESS)
            finally:
                done.release()
        _thread.start_new_thread(run, ())
        done.acquire()
        """,
    "os.fork": """
        if not (child := os.fork()):
            tries(lambda: connect(ADDRESS))
            os._exit(0)
        os.waitpid(child, 0)
        """,
    "spawn": """
        child = multiprocessing.get_context("spawn").Process(target=connect, args=[ADDRESS])
        child.start()
        child.join()
        """,
    "forkserver": """
        child = multiprocessing.get_context("forkserver").Process(target=connect, args=[ADDRESS])
        child.start()
        child.join()
        """,
    "a Python of subprocess": """
        subprocess.run([sys.executable, "-c", CODE, ADDRESS], env={}, stderr=subprocess.DEVNULL)
        """,
    "a Python of a shell": """
        os.system(f"{sys.executable} -c '{CODE}' {ADDRESS} 2>/dev/null")
        """,
    "a Python of fork_exec": """
        fork_exec([sys.executable, "-c", CODE, ADDRESS])
        """,
    "connect() by ctypes": """
        number = socket.socket()
        target = b"\\x02\\0" + PORT.to_bytes(2, "big") + socket.inet_aton(ADDRESS) + bytes(8)
        ctypes.CDLL(None).connect(number.fileno(), target, 16)
        """,
}
"""A replay lets none of these out."""

NAMED = {
    "subprocess": "subprocess.run([PROGRAM, URL])",
    "asyncio's subprocess": """
        async def start():
            await (await asyncio.create_subprocess_exec(PROGRAM, URL)).wait()
        asyncio.run(start())
        """,
    "a shell": "subprocess.run(f'cd / && X=1 exec {PROGRAM} {URL}', shell=True)",
    "os.system": "os.system(f'X=1 {PROGRAM} {URL}')",
    "os.popen": "os.popen(f'{PROGRAM} {URL}').read()",
    "os.posix_spawn": "os.waitpid(os.posix_spawn(PROGRAM, [PROGRAM, URL], os.environ), 0)",
    "os.spawnv": "os.spawnv(os.P_WAIT, PROGRAM, [PROGRAM, URL])",
    "os.execv": """
        if not (child := os.fork()):
            os.execv(PROGRAM, [PROGRAM, URL])
        os.waitpid(child, 0)
        """,
    "pty.spawn": "pty.spawn([PROGRAM, URL], lambda number: os.read(number, 99) and b'')",
    "fork_exec": "fork_exec([PROGRAM, URL])",
    "system() by ctypes": "ctypes.CDLL(None).system(f'{PROGRAM} {URL}'.encode())",
    "a program of a child": """
        start = f"import subprocess; subprocess.run({[PROGRAM, URL]})"
        subprocess.run([sys.executable, "-c", start])
        """,
    "a Python that ignores its environment": """
        subprocess.run([PYTHON, "-I", "-c", CODE, ADDRESS])
        """,
    "a Python without an environment": """
        os.waitpid(os.posix_spawn(PYTHON, [PYTHON, "-c", CODE, ADDRESS], {}), 0)
        """,
}
"""A replay names these; with --no-subprocess it refuses them."""

DISGUISED = {
    "a script that is named like Python": """
        script = os.path.join(os.path.dirname(PROGRAM), "python3.7")
        with open(script, "w") as file:
            file.write(f"#!/bin/sh\\nexec {PROGRAM} {URL}\\n")
        os.chmod(script, 0o755)
        subprocess.run([script])
        """,
    "curl that is named like Python": """
        link = os.path.join(os.path.dirname(PROGRAM), "python3.8")
        os.symlink(PROGRAM, link)
        subprocess.run([link, URL])
        """,
}
"""A replay names these, since nothing in them reports that it carries the guard."""

LIMITS = {
    "connect() by cffi": """
        import cffi
        ffi = cffi.FFI()
        ffi.cdef("int connect(int, char *, int);")
        number = socket.socket()
        target = b"\\x02\\0" + PORT.to_bytes(2, "big") + socket.inet_aton(ADDRESS) + bytes(8)
        ffi.dlopen(None).connect(number.fileno(), target, 16)
        """,
    "a subinterpreter": """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        code = f"import socket; socket.create_connection(('{ADDRESS}', {PORT}), 5)"
        interpreters.run_string(interpreters.create(), code)
        """,
}
"""Silent, and on the page of limits (docs/limits.toml)."""

NAMES = {
    "system() by ctypes": "system() of C",
    "a Python that ignores its environment": Path(sys.executable).name,
    "a Python without an environment": Path(sys.executable).name,
    "a script that is named like Python": "python3.7",
    "curl that is named like Python": "python3.8",
}
"""The names under which doors are listed that do not start a program of their own name."""

DOORS = {**REFUSED, **NAMED, **DISGUISED, **LIMITS}


class Server:
    """Notes which of this machine's addresses were reached, by TCP and UDP."""

    def __init__(self) -> None:
        self.reached: set[str] = set()
        self._tcp = socket.create_server(("0.0.0.0", 0))
        self.port: int = self._tcp.getsockname()[1]
        self._udp = socket.socket(type=socket.SOCK_DGRAM)
        self._udp.bind(("0.0.0.0", self.port))
        self._udp.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO tells the address.
        for listen in (self._accept, self._receive):
            threading.Thread(target=listen, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._tcp.accept()
                with connection, suppress(OSError):
                    self.reached.add(connection.getsockname()[0])
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    def _receive(self) -> None:
        with suppress(OSError):
            while True:
                _, around, _, _ = self._udp.recvmsg(9, 99)
                self.reached.add(socket.inet_ntoa(around[0][2][8:12]))

    def close(self) -> None:
        self._tcp.close()
        self._udp.close()


@dataclass(frozen=True)
class Met:
    """What became of the doors of one command: which reached the server, and which were named."""

    exit: int
    reached: set[str]
    named: set[str]


@dataclass
class Attack:
    """Tries doors in one agent, which is recorded and replayed."""

    shell: Shell
    server: Server
    tried: Collection[str] = ()

    def write(self, doors: dict[str, str]) -> None:
        """Write the agent, and a link to curl for each door."""
        self.tried = doors
        code = "import socket, sys; socket.create_connection((sys.argv[1], %d), 5)"
        pieces = [
            f"PORT, CODE = {self.server.port}, {(code % self.server.port)!r}",
            HEAD,
            "if __name__ == '__main__':\n    PYTHON = sys.executable",
            # A replay of a tape without any exchange fails, and names what ran outside.
            "    import tracefork_core\n    def seen(): return 1",
            "    tracefork_core.tool(effect='read')(seen)()",
        ]
        links = self.shell.folder / "links"
        shutil.rmtree(links, ignore_errors=True)
        links.mkdir()
        for door, text in doors.items():
            name = self.name(door)
            (links / name).symlink_to(shutil.which("curl") or "curl")
            body = textwrap.dedent(text).strip()
            values = {
                "ADDRESS": self.address(door),
                "PROGRAM": str(links / name),
                "URL": f"http://{self.address(door)}:{self.server.port}/",
            }
            given = "".join(f"{key} = {value!r}\n" for key, value in values.items())
            pieces.append(
                "    def door():\n" + textwrap.indent(given + body, " " * 8) + "\n    tries(door)"
            )
        self.shell.write("doors.py", "\n".join(pieces) + "\n")

    def run(self, *words: str) -> Met:
        """Run a command that tries the doors."""
        self.server.reached.clear()
        links = self.shell.folder / "links"
        for name in ("python3.7", "python3.8"):
            (links / name).unlink(missing_ok=True)
        done = self.shell.tracefork(*words, "--json")
        document = done.document
        listed = document.get("coverage", document)
        named = {*listed.get("strays", []), *listed.get("subprocesses", [])}
        reached = {door for door in self.tried if self.address(door) in self.server.reached}
        return Met(done.exit, reached, {door for door in self.tried if self.is_named(door, named)})

    def is_named(self, door: str, named: set[str]) -> bool:
        """Return whether a summary lists the address or the program of a door."""
        names = {NAMES.get(door, self.name(door)), f"{self.address(door)}:{self.server.port}"}
        if door == "connect() by ctypes":
            names.add("connect() of C")
        return bool(names & named)

    @staticmethod
    def address(door: str) -> str:
        """Return the address of this machine that only this door reaches."""
        return f"127.0.1.{1 + list(DOORS).index(door)}"

    @staticmethod
    def name(door: str) -> str:
        """Return the name of the program that only this door starts."""
        return f"door{1 + list(DOORS).index(door)}"


@pytest.fixture
def attack(shell: Shell) -> Iterator[Attack]:
    server = Server()
    yield Attack(shell, server)
    server.close()


def test_doors_that_a_replay_refuses(attack: Attack) -> None:
    """Each reaches the server while it is recorded, which names it, and none in the replay."""
    attack.write(REFUSED)
    recorded = attack.run("record", "doors.py")
    assert recorded == Met(0, set(REFUSED), set(REFUSED))
    replayed = attack.run("replay", "doors.tape")
    assert (replayed.exit, replayed.reached) == (4, set())


def test_doors_that_a_replay_names(attack: Attack) -> None:
    """They are programs, which may start unless they are ruled out. Limits are silent."""
    doors = NAMED | DISGUISED | LIMITS
    attack.write(doors)
    recorded = attack.run("record", "doors.py")
    assert recorded == Met(0, set(doors), set(NAMED | DISGUISED))
    replayed = attack.run("replay", "doors.tape")
    assert replayed == Met(0, set(doors), set(NAMED | DISGUISED))
    ruled_out = attack.run("replay", "doors.tape", "--no-subprocess")
    assert (ruled_out.exit, ruled_out.reached) == (4, set(DISGUISED | LIMITS))
    print(
        f"\n{len(DOORS)} doors tried: {len(REFUSED)} refused, {len(NAMED | DISGUISED)} named, "
        f"{len(LIMITS)} known limits, 0 failed"
    )

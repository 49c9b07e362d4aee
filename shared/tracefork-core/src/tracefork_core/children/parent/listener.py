"""Accept child processes on a local socket, which opens when the first child starts."""

from __future__ import annotations

import hmac
import os
import secrets
import shutil
import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from tracefork_core.children import messages
from tracefork_core.children.messages import GREETING_LIMIT, BrokenFrameError, frame, receive
from tracefork_core.children.parent.server import Host, Served
from tracefork_core.exchange.current import crossing_seam

_GREETING_SECONDS = 10.0
_CONNECTIONS = 2000
_BYE_SECONDS = 5.0


class Listener:
    """The socket of one session, and the processes connected to it.

    Attributes:
        address: a path, or "127.0.0.1:port" on platforms without unix sockets.
        token: the secret that a process must send first.
        clock_misses: the clock reads in other processes for which the tape had no value.
        entropy_misses: the entropy draws in other processes for which the tape had no value.
        complaints: descriptions of refused connections, for the receipt.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self.closed = False
        self.clock_misses = self.entropy_misses = 0
        self.complaints: list[str] = []
        self._granted: dict[str, str] = {}
        self._lock = threading.Lock()
        self._peers: dict[socket.socket, Served | None] = {}
        self._threads: list[threading.Thread] = []
        with crossing_seam():  # Our own randomness and thread are not part of the run.
            self.token = secrets.token_hex(16)
            self._folder, self._socket, self.address = _listening()
            self._start(self._accept)

    def close(self) -> None:
        """Refuse calls from now on; calls in progress are still answered."""
        with self._lock:
            self.closed = True
            peers = dict(self._peers)
        self._shut(self._socket)
        with suppress(OSError):  # A program that closes all descriptors has closed this one too.
            self._socket.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        for peer, served in peers.items():
            if served is not None and served.busy.acquire(timeout=_BYE_SECONDS):
                served.busy.release()
            self._shut(peer)

    def wait(self) -> None:
        """Wait for the threads of the connections; call it after the session has closed."""
        for thread in self._threads:
            thread.join(_BYE_SECONDS)

    def forget(self) -> None:
        """Close the sockets that a forked child inherited, so that its parent notices hang-ups."""
        for peer in (*self._peers, self._socket):
            peer.close()

    def lane_of(self, process: str, lane: str) -> str:
        """Return the lane of a process: the one it was given, or "lane+2" if that is taken."""
        with self._lock:
            if process not in self._granted:
                taken, granted, n = set(self._granted.values()), lane, 1
                while granted in taken:
                    n += 1
                    granted = f"{lane}+{n}"
                self._granted[process] = granted
            return self._granted[process]

    def left(self, clock: int, entropy: int) -> None:
        """Add the misses that a process reports as it ends."""
        with self._lock:
            self.clock_misses += clock
            self.entropy_misses += entropy

    def _accept(self) -> None:
        while not self.closed:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            if self._is_welcome(peer):
                self._start(self._serve, peer)
            else:
                peer.close()

    def _is_welcome(self, peer: socket.socket) -> bool:
        with self._lock:
            if self.closed or len(self._peers) >= _CONNECTIONS:
                return False
            self._peers[peer] = None
            return True

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True, name="tracefork")  # type: ignore[arg-type]
        self._threads = [*(t for t in self._threads if t.is_alive()), thread]
        thread.start()

    def _serve(self, peer: socket.socket) -> None:
        try:
            hello = self._greeted(peer)
            if hello is not None:
                served = Served(self._host, self, peer, hello)
                with self._lock:
                    self._peers[peer] = served
                served.serve()
        except (BrokenFrameError, msgspec.MsgspecError) as error:
            self._complain(f"a process that sent an invalid message to the run's socket ({error})")
        except OSError:
            pass  # The process was killed, or the session has closed.
        finally:
            with self._lock:
                self._peers.pop(peer, None)
            peer.close()

    def _greeted(self, peer: socket.socket) -> messages.Hello | None:
        peer.settimeout(_GREETING_SECONDS)
        message = receive(peer, GREETING_LIMIT)
        if message is None:
            return None
        hello = messages.hello(message)
        if not hmac.compare_digest(hello.token.encode(), self.token.encode()):
            self._complain("a process without the token of the run's socket")
            return None
        peer.sendall(frame(messages.encode(messages.Done())))
        peer.settimeout(None)
        return hello

    def _complain(self, complaint: str) -> None:
        with self._lock:
            if complaint not in self.complaints:
                self.complaints.append(complaint)

    @staticmethod
    def _shut(peer: socket.socket) -> None:
        with suppress(OSError):
            peer.shutdown(socket.SHUT_RDWR)


def _listening() -> tuple[Path | None, socket.socket, str]:
    """Open a socket that only this user can reach; return its folder, itself and its address."""
    if hasattr(socket, "AF_UNIX"):
        folder = Path(tempfile.mkdtemp(prefix="tracefork-"))
        address = folder / "run"
        listening = socket.socket(socket.AF_UNIX)
        try:
            listening.bind(os.fspath(address))
            address.chmod(0o600)
            listening.listen(128)
        except OSError:  # The path is too long for a unix socket.
            listening.close()
            shutil.rmtree(folder, ignore_errors=True)
        else:
            return folder, listening, os.fspath(address)
    listening = socket.socket(socket.AF_INET)
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)
    return None, listening, f"127.0.0.1:{listening.getsockname()[1]}"

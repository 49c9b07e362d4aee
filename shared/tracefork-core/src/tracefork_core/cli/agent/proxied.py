"""Run a command behind a proxy, as an agent: any language, seen through its HTTP requests."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tracefork_core.cli.display import screen
from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.proxy.routes import Routes

LOOPBACK = "127.0.0.1"


@dataclass(slots=True)
class Proxied:
    """A command, and the proxy that it runs behind; without a command the proxy runs alone."""

    command: list[str] = field(default_factory=list)
    upstreams: list[str] = field(default_factory=list)
    host: str = LOOPBACK
    port: int = 0
    no_network: bool = False

    @property
    def words(self) -> list[str]:
        """The same as words of a command line."""
        words = [f"--upstream={url}" for url in self.upstreams]
        words += [f"--host={self.host}", "--expose"] if self.host != LOOPBACK else []
        words += [f"--port={self.port}"] if self.port else []
        words += ["--no-network"] * self.no_network
        return [*words, *(["--", *self.command] if self.command else [])]

    @classmethod
    def of(cls, words: Sequence[str]) -> Proxied:
        """Return what `words` returned words for."""
        proxied, options = cls(), list(words)
        if "--" in options:
            place = options.index("--")
            options, proxied.command = options[:place], options[place + 1 :]
        for option in options:
            name, _, value = option.partition("=")
            match name:
                case "--upstream":
                    proxied.upstreams.append(value)
                case "--host":
                    proxied.host = value
                case "--port":
                    proxied.port = int(value)
                case "--no-network":
                    proxied.no_network = True
        return proxied


def prepare(words: Sequence[str]) -> None:
    """Check that the command and the libraries of the proxy exist, before a tape is made.

    Raises:
        UsageError: one of them does not.
    """
    from tracefork_core.proxy import network, upstream

    upstream.check_extra()
    proxied = Proxied.of(words)
    if proxied.command and shutil.which(proxied.command[0]) is None:
        raise UsageError(f"tracefork: there is no program {proxied.command[0]} to run.")
    if proxied.no_network:
        if not proxied.command:
            raise UsageError("tracefork: --no-network is for a command: give it after `--`.")
        network.check_namespaces()


def run(words: Sequence[str]) -> None:
    """Run a command behind a proxy of the current session; without one, the proxy until Ctrl-C.

    Raises:
        UsageError: the command or the extra does not exist, or the port is taken.
        SystemExit: the command ended with another status than 0.
    """
    from tracefork_core.children.environment import announce
    from tracefork_core.egress.guard import call_through
    from tracefork_core.exchange.current import current_session
    from tracefork_core.proxy import network, program
    from tracefork_core.proxy.routes import Routes
    from tracefork_core.proxy.server import ProxyServer

    session, proxied = current_session(), Proxied.of(words)
    assert session is not None
    routes = Routes.of(os.environ, proxied.upstreams)
    with (
        TemporaryDirectory(prefix="tracefork-proxy-") as folder,
        ProxyServer(
            session,
            routes,
            host=proxied.host,
            port=proxied.port,
            path=Path(folder, "socket") if proxied.no_network else None,
        ) as server,
    ):
        call_through(f"{LOOPBACK}:{server.port}")
        announce()
        if not proxied.command:
            address = server.address
            program.until_stopped(session, lambda: _print_addresses(address, routes))
            return
        command = proxied.command
        if proxied.no_network:
            command = network.without_network(command, Path(folder, "socket"), server.port)
        status = program.run(command, routes.environment(server.address), session)
    if status:
        raise SystemExit(status)


def _print_addresses(address: str, routes: Routes) -> None:
    console = screen.stderr()
    console.print(f"● proxy at {address}", soft_wrap=True)
    for name, value in routes.environment(address).items():
        console.print(f"  export {name}={shlex.quote(value)}", soft_wrap=True)
    console.print("  Ctrl-C ends it.", style=screen.DIM)


def check(host: str, *, expose: bool) -> None:
    """Refuse to listen on another address than this machine's own, unless told twice.

    Raises:
        UsageError: `host` is another address, and `expose` is not given.
    """
    if host not in (LOOPBACK, "localhost") and not expose:
        raise UsageError(
            f"tracefork: --host {host} lets other machines use the proxy, and read answers of the "
            "tape through it. Add --expose if you want that, or leave --host out."
        )

"""`tracefork proxy`: record and replay programs of any language through a local proxy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tracefork_core.cli import fork_options, options, tape_names
from tracefork_core.cli.agent.agent import Agent
from tracefork_core.cli.agent.proxied import LOOPBACK, Proxied, check
from tracefork_core.cli.commands.fork import ForkBranch, ForkChange
from tracefork_core.errors import UsageError
from tracefork_core.tape.schema import Mode

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def proxy() -> None:
    """Record and replay programs of any language through a local proxy."""


class _BehindProxy(options.AgentCommand):
    """A command that takes a tape, and optionally the command that runs behind the proxy."""

    usage = "[OPTIONS] TAPE [-- COMMAND…]"


class _WithCommand(options.AgentCommand):
    """A command that needs a command to run behind the proxy."""

    usage = "[OPTIONS] -- COMMAND…"


@dataclass(frozen=True, slots=True)
class _ProxyOptions:
    """Where the proxy listens, and where it sends requests."""

    upstream: Annotated[
        list[str] | None,
        typer.Option(
            "--upstream",
            metavar="[NAME=]URL",
            help="The server behind the path /NAME; without a name, behind all other paths.",
        ),
    ] = None
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port (0: a free one).")
    ] = 0
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")
    ] = LOOPBACK
    expose: Annotated[
        bool, typer.Option("--expose", help="Allow a --host that other machines can reach.")
    ] = False

    no_network: Annotated[
        bool,
        typer.Option("--no-network", help="Let the command reach the proxy and nothing else."),
    ] = False

    def agent(self, context: typer.Context) -> Agent:
        """Return the command behind `--`, behind the proxy, as an agent."""
        check(self.host, expose=self.expose)
        command = options.behind_dashes(context)
        proxied = Proxied(command, self.upstream or [], self.host, self.port, self.no_network)
        words = proxied.words
        return Agent("proxied", Path(command[0]).name if command else "proxy", tuple(words))


@app.command(cls=_BehindProxy)
@options.grouped
def record(
    ctx: typer.Context,
    tape: Annotated[Path, typer.Argument(metavar="TAPE", help="The tape to write.")],
    through: _ProxyOptions,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing tape.")
    ] = False,
    mode: options.TapeMode = "safe",
    mask: options.Mask = None,
    as_json: options.AsJson = False,
) -> int:
    """Run a command live and record its HTTP calls on a tape.

    The base URLs of its SDKs are set to the proxy, which sends each request on to the provider.
    Without a command, the proxy prints its addresses and records until Ctrl-C.
    """
    from tracefork_core.cli.commands import record as recording
    from tracefork_core.run.record import record as recorded
    from tracefork_core.tape.schema import as_mode

    agent = through.agent(ctx)
    path = tape_names.to_write(tape)
    kept: Mode = as_mode(mode)
    scope = recorded(
        path,
        overwrite=overwrite,
        clock=False,
        entropy=False,
        mode=kept,
        mask=mask or [],
        scope="process",
    )
    again = ["tracefork", "proxy", "record", "--overwrite", tape_names.shown(path), *agent.argv]
    with recording.restored_without_agent(path, overwrite=overwrite):
        return recording.perform(scope, agent, path, again, mask or [], as_json=as_json)


@app.command(cls=_BehindProxy)
@options.grouped
def replay(
    ctx: typer.Context,
    tape: options.TapeName,
    through: _ProxyOptions,
    match: options.Match = None,
    ignore: options.Ignore = None,
    mask: options.Mask = None,
    as_json: options.AsJson = False,
) -> int:
    """Run a command again, with every answer taken from the tape.

    No request leaves the proxy. The first request that the tape does not hold is answered with
    status 424, and so are all later ones.
    """
    from tracefork_core.cli.commands import replay as replaying
    from tracefork_core.cli.display.replay_report import read_recorded
    from tracefork_core.run.replay import replay as replayed

    agent, path = through.agent(ctx), tape_names.find(tape)
    agent.prepare()
    matchers = options.matchers(match, ignore)
    scope = replayed(
        path, match=matchers, clock=False, entropy=False, mask=mask or [], scope="process"
    )
    recorded = read_recorded(path, mask or [])
    return replaying.perform(scope, recorded, agent, matchers, agent.words, as_json=as_json)


@app.command(cls=_BehindProxy)
@options.grouped
def fork(
    ctx: typer.Context,
    tape: options.TapeName,
    through: _ProxyOptions,
    at: fork_options.At = "",
    *,
    change: ForkChange,
    branch: ForkBranch,
    as_json: options.AsJson = False,
) -> int:
    """Replay a command up to a call, change that call, and run live from there."""
    from tracefork_core.cli.commands import fork as forking

    agent, path = through.agent(ctx), tape_names.find(tape)
    agent.prepare()
    return forking.run(agent, path, at, change, branch, as_json=as_json)


@app.command(cls=_WithCommand)
@options.grouped
def calibrate(
    ctx: typer.Context,
    through: _ProxyOptions,
    no_live: Annotated[bool, typer.Option("--no-live", help="Skip the second live run.")] = False,
    as_json: options.AsJson = False,
) -> int:
    """Find what changes between runs of a command, and the --ignore that leaves it out.

    The command is recorded live, replayed twice, and recorded live once more.
    """
    from tracefork_core.cli.commands import calibrate as calibrating

    agent = through.agent(ctx)
    if not options.behind_dashes(ctx):
        raise UsageError(
            "tracefork: calibrate needs a command: tracefork proxy calibrate -- COMMAND"
        )
    agent.prepare()
    return calibrating.run(agent, Path.cwd(), None, [], live=not no_live, as_json=as_json)

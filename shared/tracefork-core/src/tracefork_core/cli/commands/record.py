"""`tracefork record`: run an agent live and record it on a tape."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.agent.agent import Agent
from tracefork_core.cli.agent.as_main import NoAgentError
from tracefork_core.cli.agent.hard_exit import Outcome
from tracefork_core.cli.agent.recorded_command import remember
from tracefork_core.cli.agent.tool_settings import tools_for
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.coverage import coverage_document, coverage_words, unseen_words
from tracefork_core.cli.display.secrets import secret_words, unsearched_words
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import UsageError
from tracefork_core.seams.tools.tool_names import NoToolError

if TYPE_CHECKING:
    from tracefork_core.cli.display.account import Account
    from tracefork_core.run.record import Recording
    from tracefork_core.run.scope import Scope
    from tracefork_core.tape import Receipt
    from tracefork_core.tape.schema import Mode

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True, slots=True)
class _TapeOptions:
    """Which tape to write, and what to keep on it."""

    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="TAPE", help="The tape to write (default: the agent's name)."
        ),
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing tape.")] = (
        False
    )
    mode: options.TapeMode = "safe"
    mask: options.Mask = None
    seal_to: Annotated[
        list[str] | None,
        typer.Option(
            "--to", metavar="age1…", help="Encrypt a sealed tape for this age public key."
        ),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop the agent when the tape cannot be written.")
    ] = False


@app.command(cls=options.AgentCommand)
@options.grouped
def record(
    ctx: typer.Context,
    agent_words: options.AgentWords,
    tape: _TapeOptions,
    tools: options.ToolOptions,
    switches: options.Switches,
    boundary: options.Boundary = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Refuse every connection of the agent.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Run an agent live and record it on a tape.

    A script runs as `python SCRIPT` would run it, a project folder as its framework would. The
    agent's output stays on stdout, and its exit status becomes that of this command. Without -o
    the tape is named after the agent, with a number if that name is taken.
    """
    from tracefork_core.chance.guard.boundary import as_mode as as_boundary
    from tracefork_core.run.record import record as recording
    from tracefork_core.tape.schema import as_mode

    agent = agent_words.read(ctx)
    if agent is None:
        raise UsageError(
            "tracefork: record needs an agent: a script, a project folder, -m MODULE or "
            "--agent PKG.MOD:FN."
        )
    path = tape_names.to_write(tape.output or tape_names.free_name(agent.name))
    named, tables = tools_for(agent, tools.tool, tools.tool_of)
    scope = recording(
        path,
        overwrite=tape.overwrite,
        clock=not switches.no_clock,
        entropy=not switches.no_entropy,
        subprocesses=not switches.no_subprocess,
        boundary=as_boundary(boundary),
        offline=offline,
        mode=as_mode(tape.mode),
        mask=tape.mask or [],
        seal_to=tape.seal_to or [],
        strict=tape.strict,
        scope="process",
        tools=named,
        tools_of=tables,
    )

    again = ["tracefork", "record", "--overwrite", "-o", tape_names.shown(path)]
    again += [*tools.words, *agent.argv]
    # That a script exists is known by now; modules, functions and tools may still turn out missing.
    uncertain = agent.form != "script" or bool(named or tables)
    with restored_without_agent(path, overwrite=tape.overwrite and uncertain):
        return perform(scope, agent, path, again, tape.mask or [], as_json=as_json)


def perform(
    scope: Scope[Recording],
    agent: Agent,
    path: Path,
    again: list[str],
    mask: list[str],
    *,
    as_json: bool,
) -> int:
    """Run an agent in a recording, report it, and return the exit code.

    `again` is the command that records it once more.
    """
    shown, cwd = tape_names.shown(path), Path.cwd()  # A project changes to its own folder.
    agent.prepare()

    def report(outcome: Outcome[Recording]) -> int:
        with screen.stdout_kept(as_json):
            run, ending = outcome()
        assert run.receipt is not None
        remember(path, run.receipt.digest, agent, cwd, mask)
        _report(path, shown, run, agent, again, status=ending.status, as_json=as_json)
        return ending.status

    return report(lambda: agent.run_under(scope, show=True, told=report))


@contextmanager
def restored_without_agent(path: Path, *, overwrite: bool) -> Iterator[None]:
    """Restore the tape at a path if it turns out that there is no agent to run."""
    from tracefork_core.tape.creation import SCRATCH
    from tracefork_core.tape.schema import BESIDE, beside

    files = [beside(path, suffix) for suffix in ("", *BESIDE)]
    earlier = [file for file in files if overwrite and file.is_file()]
    with ExitStack() as stack:
        kept = (
            stack.enter_context(TemporaryDirectory(prefix=f"{SCRATCH}earlier-", dir=path.parent))
            if earlier
            else ""
        )
        for file in earlier:
            with suppress(OSError):  # A file that cannot be read is not overwritten either.
                shutil.copy2(file, kept)
        try:
            yield
        except (NoAgentError, NoToolError):
            for file in files:
                file.unlink(missing_ok=True)
            for file in earlier:
                Path(kept, file.name).replace(file)
            raise


def _report(
    path: Path,
    shown: str,
    run: Recording,
    agent: Agent,
    again: list[str],
    *,
    status: int,
    as_json: bool,
) -> None:
    """Print what was recorded; `again` is the command that records it once more."""
    from tracefork_core.cli.display.account import sealed_account, take_account
    from tracefork_core.run.captured import outside_words
    from tracefork_core.tape import Tape

    receipt = run.receipt
    assert receipt is not None
    unseen = receipt.unwatched
    with Tape.open(path) as tape:
        mode, account = tape.mode, take_account(tape) if tape.opens else sealed_account(receipt)
    following = agent.command("replay", shown)
    if outside_words(receipt):
        following = "tracefork doctor"
    elif mode == "metadata":
        following = f"tracefork show {shlex.quote(shown)}"
    elif receipt.outcome != "ok" and not account.exchanges:
        following = shlex.join(again)
    if as_json:
        screen.say_json(
            {
                "command": "record",
                "exit": status,
                "tape": str(path),
                "digest": receipt.digest,
                "outcome": receipt.outcome,
                "seconds": receipt.took / 1e9,
                **account.document(),
                "bytes_on_disk": path.stat().st_size,
                "coverage": coverage_document(receipt),
                "blind_spots": unseen,
                "mode": mode,
                "secrets": receipt.secrets,
                "unsearched": receipt.unsearched,
                "leaks": run.leaks,
                "unused_tools": receipt.unused_tools,
                "replaced": receipt.replaced,
                "next": following,
            }
        )
    else:
        _print_summary(path, shown, receipt, account, mode, following, run.leaks, unseen)


def _print_summary(
    path: Path,
    shown: str,
    receipt: Receipt,
    account: Account,
    mode: Mode,
    following: str,
    leaks: list[str],
    unseen: list[str],
) -> None:
    from rich.text import Text

    from tracefork_core.run.captured import REMEDY, outside_words
    from tracefork_core.run.untaped import untaped_words

    console = screen.stderr()
    kinds = account.kinds()
    facts = [
        f"{figures.several(account.exchanges, 'exchange')}{f' ({kinds})' if kinds else ''}",
        *([figures.several(account.lanes, "lane")] if account.lanes else []),
        figures.duration(receipt.took / 1e9),
        *([] if mode == "safe" else [mode]),
    ]
    head = Text("● recorded ", screen.GOOD).append(shown, "bold").append(" · ", "default")
    console.print(head.append(" · ".join(facts), "default"), soft_wrap=True)
    bytes_ = figures.size(path.stat().st_size)
    if account.wire:
        bytes_ += f" for {figures.size(account.wire)} on the wire"
    digest = figures.digest(receipt.digest)
    facts = [*account.spending, f"digest {digest}", bytes_]
    console.print(f"  {' · '.join(facts)}", soft_wrap=True)
    console.print(f"  {coverage_words(receipt)}", soft_wrap=True)
    if unseen:
        screen.note(console, f"  {unseen_words(unseen)}", screen.WARN)
    if receipt.secrets:
        console.print(f"  secrets masked: {secret_words(receipt.secrets)}", soft_wrap=True)
    if receipt.unsearched:
        screen.note(console, f"  ! {unsearched_words(receipt.unsearched)}", screen.WARN)
    if account.untaped:
        words = untaped_words(account.untaped, "A replay runs {} again.")
        screen.note(console, f"  ! {printable(words)}", screen.WARN)
    for unused in receipt.unused_tools:
        screen.note(console, f"  ! had no effect: {printable(unused)}", screen.WARN)
    if receipt.replaced:
        names = printable(", ".join(receipt.replaced))
        words = f"  ! not on the tape: what the agent put in place of {names}"
        screen.note(console, words, screen.WARN)
    for leak in leaks:
        screen.note(console, f"  ! not on the tape: {printable(leak)}", screen.WARN)
    if receipt.outcome != "ok" and not account.exchanges:
        words = f"  ! the agent ended with {receipt.outcome} before its first call"
        screen.note(console, words, screen.WARN)
    elif receipt.outcome == KeyboardInterrupt.__name__:
        console.print("  interrupted by Ctrl-C; a replay goes up to here")
    elif receipt.outcome != "ok":
        console.print(f"  the agent ended with {receipt.outcome}; a replay must end the same way")
    elif outside := outside_words(receipt):
        words = f"  ! nothing was captured: {printable(outside)}. {REMEDY}"
        screen.note(console, words, screen.WARN)
    elif not account.exchanges:
        words = "  ! nothing was captured: the agent made no call. A replay of this proves nothing"
        screen.note(console, words, screen.WARN)
    console.print(Text("  next: ", screen.DIM).append(following, "default"), soft_wrap=True)

"""`tracefork record`: run an agent live and put its run on a tape."""

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
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.coverage import coverage_document, coverage_words, unseen_words
from tracefork_core.cli.display.secrets import secret_words
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import UsageError

if TYPE_CHECKING:
    from tracefork_core.cli.display.account import Account
    from tracefork_core.run.record import Recording
    from tracefork_core.tape import Receipt
    from tracefork_core.tape.schema import Mode

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True, slots=True)
class _TapeOptions:
    """Which tape is written, and what it keeps."""

    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="TAPE", help="Where the tape goes.")
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a tape of that name.")] = (
        False
    )
    mode: Annotated[
        str,
        typer.Option("--mode", metavar="MODE", help="What is kept: safe, metadata, sealed or raw."),
    ] = "safe"
    mask: options.Mask = None
    seal_to: Annotated[
        list[str] | None,
        typer.Option("--to", metavar="age1…", help="Who may read a sealed tape: an age key."),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop the agent if the tape cannot be written.")
    ] = False


@app.command(cls=options.AgentCommand)
@options.grouped
def record(
    ctx: typer.Context,
    agent_words: options.AgentWords,
    tape: _TapeOptions,
    switches: options.Switches,
    boundary: options.Boundary = None,
    offline: Annotated[bool, typer.Option("--offline", help="Refuse every connection.")] = False,
    as_json: options.AsJson = False,
) -> int:
    """Run an agent live and record it on a tape.

    The agent runs in this process as `python SCRIPT` would run it, or a project's folder as its
    framework would; its output is untouched and its exit status is passed on. Without -o the tape
    is named after the agent, with a number where that name is taken.
    """
    from tracefork_core.chance.guard.boundary import as_mode as as_boundary
    from tracefork_core.run import record as recording
    from tracefork_core.tape.schema import as_mode

    agent = agent_words.read(ctx)
    if agent is None:
        raise UsageError(
            "tracefork: record what? A script, a folder, -m MODULE or --agent PKG.MOD:FN."
        )
    path = (tape.output or tape_names.free_name(agent.name)).absolute()
    shown, cwd = tape_names.shown(path), Path.cwd()
    agent.prepare()
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
    )

    def told(outcome: Outcome[Recording]) -> int:
        with screen.stdout_kept(as_json):
            run, ending = outcome()
        assert run.receipt is not None
        remember(path, run.receipt.digest, agent, cwd)
        _report(path, shown, run, agent, status=ending.status, as_json=as_json)
        return ending.status

    # Whether a script is there is known by now.
    with _as_it_was(path, overwrite=tape.overwrite and agent.form != "script"):
        return told(lambda: agent.run_under(scope, show=True, told=told))


@contextmanager
def _as_it_was(path: Path, *, overwrite: bool) -> Iterator[None]:
    """Leave everything at a path as it was where there turns out to be no agent to run."""
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
            with suppress(OSError):  # What cannot be read is not overwritten either.
                shutil.copy2(file, kept)
        try:
            yield
        except NoAgentError:
            for file in files:
                file.unlink(missing_ok=True)
            for file in earlier:
                Path(kept, file.name).replace(file)
            raise


def _report(
    path: Path, shown: str, run: Recording, agent: Agent, *, status: int, as_json: bool
) -> None:
    from tracefork_core.cli.display.account import sealed_account, take_account
    from tracefork_core.cli.installed import loaded_blind_spots
    from tracefork_core.tape import Tape

    receipt = run.receipt
    assert receipt is not None
    unseen = loaded_blind_spots()
    with Tape.open(path) as tape:
        mode, account = tape.mode, take_account(tape) if tape.opens else sealed_account(receipt)
    following = f"tracefork replay {shlex.quote(shown)} {agent.words}"
    if mode == "metadata":
        following = f"tracefork show {shlex.quote(shown)}"
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
                "leaks": run.leaks,
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

    console = screen.stderr()
    kinds = _kinds(account)
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
    console.print(f"  {account.cost_words} · digest {digest} · {bytes_}", soft_wrap=True)
    console.print(f"  {coverage_words(receipt)}", soft_wrap=True)
    if unseen:
        console.print(f"  {unseen_words(unseen)}", style=screen.WARN, soft_wrap=True)
    if receipt.secrets:
        console.print(f"  secrets masked: {secret_words(receipt.secrets)}", soft_wrap=True)
    for leak in leaks:
        console.print(f"  ! past the tape: {printable(leak)}", style=screen.WARN, soft_wrap=True)
    if receipt.outcome != "ok":
        console.print(f"  the agent ended with {receipt.outcome}; a replay expects the same")
    elif not account.exchanges:
        console.print(
            "  ! nothing crossed a seam; `tracefork doctor` lists what has one",
            style=screen.WARN,
        )
    console.print(Text("  next: ", screen.DIM).append(following, "default"), soft_wrap=True)


def _kinds(account: Account) -> str:
    other = account.exchanges - account.model_calls
    kinds = [f"{account.model_calls} model"] if account.model_calls else []
    return ", ".join([*kinds, f"{other} other"]) if other and kinds else "".join(kinds)

"""`tracefork ci`: keep a folder of tapes, and check that all of them still replay."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import screen
from tracefork_core.cli.exits import DIFFERENT, SAME
from tracefork_core.cli.gate.manifest import DEFAULT_FOLDER
from tracefork_core.errors import UnwritableError, UsageError

if TYPE_CHECKING:
    from tracefork_core.cli.gate.manifest import Manifest
    from tracefork_core.cli.gate.rates import Rates
    from tracefork_core.cli.gate.verdict import Gate

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)

Folder = Annotated[
    Path,
    typer.Argument(metavar="[FOLDER]", help="The folder of the tapes and of their manifest."),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Only this tape; repeat it for more."),
]


@app.callback()
def ci() -> None:
    """Keep a folder of tapes, and check that all of them still replay."""


@app.command(cls=options.AgentInFolder)
@options.grouped
def record(
    ctx: typer.Context,
    agent_words: options.AgentWords,
    compared: options.ReplayOptions,
    tools: options.ToolOptions,
    into: Annotated[
        Path, typer.Option("--into", metavar="FOLDER", help="The folder of the tapes.")
    ] = Path(DEFAULT_FOLDER),
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="The name of the tape (default: the agent's)."),
    ] = None,
    only: Only = None,
    as_json: options.AsJson = False,
) -> int:
    """Record an agent live into a folder of tapes, and add it to the manifest there.

    Without an agent, every tape of the manifest is recorded again. An agent that makes no call
    fails, and adds nothing. Options of a replay (--match, --ignore, --allow) are kept for checks.
    """
    from tracefork_core.cli.gate import manifest, recording
    from tracefork_core.cli.gate.recorded_report import tell_recorded

    folder, agent = into.absolute(), agent_words.read(ctx)
    if agent is not None:
        chosen = name or recording.default_name(agent)
        chosen = chosen if chosen.endswith(tape_names.SUFFIX) else chosen + tape_names.SUFFIX
        if Path(chosen).name != chosen:
            raise UsageError(f"tracefork: --name is the name of a file, not a path (got {name!r}).")
        jobs = [(chosen, agent, Path.cwd(), tools.words, compared.words)]
    else:
        jobs = [
            (one, entry.agent, entry.home(folder), entry.recording, entry.switches)
            for one, entry in sorted(_chosen(manifest.read(folder), only, folder).tapes.items())
        ]
    done = [
        recording.record(folder, one, who, here, recording=recorded, switches=switches)
        for one, who, here, recorded, switches in jobs
    ]
    return tell_recorded(folder, done, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Live:
    """Live runs besides the replays."""

    rerun: Annotated[
        int | None,
        typer.Option(
            "--rerun", min=1, metavar="N", help="Also run each agent live, up to N times."
        ),
    ] = None
    pass_rate: Annotated[
        float,
        typer.Option("--pass-rate", metavar="RATE", help="Share of live runs that must pass."),
    ] = 0.9
    oracle: Annotated[
        str,
        typer.Option(
            "--oracle", metavar="WORDS", help="What a good live run is: exit, regex:…, PKG.MOD:FN."
        ),
    ] = "exit"
    blame_budget: Annotated[
        str,
        typer.Option(
            "--blame-budget", metavar="BUDGET", help="Blame a live run that fails, within this."
        ),
    ] = ""

    def rates(self) -> Rates | None:
        """Return what is demanded of live runs; None if there are none."""
        if self.rerun is None:
            if self.blame_budget:
                raise UsageError(
                    "tracefork: --blame-budget blames a live run. Give --rerun N, too."
                )
            return None
        if not 0 < self.pass_rate < 1:
            raise UsageError(
                f"tracefork: --pass-rate must be between 0 and 1 (got {self.pass_rate:g})."
            )
        from tracefork_core.blaming.oracles.oracles import read_oracle
        from tracefork_core.blaming.trials.budget import Budget
        from tracefork_core.cli.gate.rates import Rates

        if self.blame_budget:
            Budget.read(self.blame_budget)
        grades = read_oracle(self.oracle, Path.cwd())
        return Rates(self.rerun, self.pass_rate, self.oracle, grades, self.blame_budget)


@app.command()
@options.grouped
def check(
    live: _Live,
    folder: Folder = Path(DEFAULT_FOLDER),
    only: Only = None,
    jobs: Annotated[
        int | None, typer.Option("-n", "--jobs", min=1, metavar="N", help="Replay N at a time.")
    ] = None,
    strict: options.Strict = False,
    annotations: Annotated[
        bool, typer.Option("--annotations", help="Print GitHub's annotations (default: on GitHub).")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit's XML.")
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option("--summary", metavar="FILE", help="Append the result in Markdown to a file."),
    ] = None,
    as_json: options.AsJson = False,
) -> int:
    """Replay every tape of a folder offline, several at a time: pass, fail or undecided.

    Exits with 0 if all pass, with the code of a replay if one fails, and with 125 if one cannot be
    tested: `git bisect run` skips such a commit. With --rerun, agents also run live, and a rate
    that is not certain after N runs is undecided.
    """
    from tracefork_core.cli.gate import annotations as github
    from tracefork_core.cli.gate import manifest
    from tracefork_core.cli.gate.junit import junit as as_junit
    from tracefork_core.cli.gate.summary import markdown

    place = folder.absolute()
    gate = check_folder(
        place, manifest.read(place), only=only, jobs=jobs, strict=strict, rates=live.rates()
    )
    if junit is not None:
        _write(junit, as_junit(gate), append=False)
    on_github = os.environ.get("GITHUB_STEP_SUMMARY") if github.is_on_github() else None
    for file in (summary, on_github):
        if file:
            _write(Path(file), "\n".join([*markdown(gate), ""]).encode(), append=True)
    code = tell(gate, "ci check", as_json=as_json)
    if (annotations or github.is_on_github()) and not as_json:
        screen.say_text("\n".join(github.commands(gate)))
    return code


@app.command()
def diff(
    folder: Folder = Path(DEFAULT_FOLDER),
    against: Annotated[
        str,
        typer.Option("--against", metavar="FOLDER|COMMIT", help="The baseline (default: HEAD)."),
    ] = "HEAD",
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Show which tapes changed since a commit, or beside another folder, and how.

    Clock, ids and the order in which lanes took turns are no differences. Exits with 0 if nothing
    changed, or with 1.
    """
    from tracefork_core.cli.gate import baseline, changes_report

    place, shown = folder.absolute(), tape_names.shown(folder)
    if not place.is_dir():
        raise UsageError(f"tracefork: there is no folder {shown}.")
    with baseline.at(against, place) as there:
        changes = baseline.compare(place, there)
    code = SAME if all(one.state == "same" for one in changes) else DIFFERENT
    if as_json:
        document = {"command": "ci diff", "exit": code, "against": against, "folder": str(place)}
        screen.say_json({**document, "tapes": changes_report.document(changes)})
    elif markdown:
        screen.say_text("\n".join(changes_report.markdown(changes, shown, against)))
    else:
        changes_report.print_changes(screen.stdout(), changes, shown, against)
    return code


@app.command()
def normalize(
    folder: Folder = Path(DEFAULT_FOLDER),
    only: Only = None,
    is_check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; exit with 1 if a text is not up to date."),
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Write each tape of a folder as text beside it, for reviews of pull requests.

    The text has each message once, and neither clock nor ids: it is the same for a tape that was
    recorded again and says the same.
    """
    from tracefork_core.cli.gate import manifest, text_files
    from tracefork_core.cli.gate.recorded_report import tell_texts

    place = folder.absolute()
    listed = _chosen(manifest.read(place), only, place)
    done = [text_files.write(place / name, only_check=is_check) for name in sorted(listed.tapes)]
    return tell_texts(done, only_check=is_check, as_json=as_json)


@app.command()
def replay(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tape of the manifest.")],
    folder: Folder = Path(DEFAULT_FOLDER),
    as_json: options.AsJson = False,
) -> int:
    """Replay one tape of a folder, as `tracefork replay` does, with the command of the manifest."""
    from tracefork_core.cli.gate import manifest

    place = folder.absolute()
    listed = manifest.read(place)
    chosen = manifest.name_of(listed, name)
    entry = listed.tapes[chosen]
    words = ["replay", *["--json"] * as_json, *entry.switches, str(place / chosen)]
    words += entry.agent.argv
    os.chdir(entry.home(place))
    python = sys.executable
    os.execv(python, [python, "-m", "tracefork_core.cli.main", *words])  # noqa: S606 - our command


def check_folder(
    folder: Path,
    listed: Manifest,
    *,
    only: list[str] | None = None,
    jobs: int | None = None,
    strict: bool = False,
    exact: bool = False,
    rates: Rates | None = None,
) -> Gate:
    """Check the tapes of a folder, and show how far it is."""
    from tracefork_core.cli.display.progress import progress, tell_runs
    from tracefork_core.cli.gate.checking import check as checked
    from tracefork_core.cli.gate.verdict import Checked

    chosen = _chosen(listed, only, folder) if only else listed
    began = time.monotonic()
    with progress() as bar:

        def finished(one: Checked, done: int, of: int) -> None:
            tell_runs(bar, began, one.name, done, of)

        return checked(
            folder, chosen, jobs=jobs, strict=strict, exact=exact, rates=rates, tell=finished
        )


def tell(gate: Gate, command: str, *, as_json: bool) -> int:
    """Print what a check found, and return its exit code."""
    if as_json:
        screen.say_json({"command": command, **gate.document()})
    else:
        from tracefork_core.cli.gate.gate_report import print_gate

        print_gate(screen.stdout(), gate)
    return gate.exit


def _chosen(listed: Manifest, only: list[str] | None, folder: Path) -> Manifest:
    from tracefork_core.cli.gate import manifest

    if not listed.tapes:
        raise UsageError(
            f"tracefork: {tape_names.shown(folder / manifest.FILE)} names no tape. Name an agent: "
            "tracefork ci record SCRIPT.py"
        )
    names = {manifest.name_of(listed, name) for name in only or listed.tapes}
    return manifest.Manifest({name: listed.tapes[name] for name in names})


def _write(file: Path, text: bytes, *, append: bool) -> None:
    try:
        with file.open("ab" if append else "wb") as opened:
            opened.write(text)
    except OSError as error:
        shown = tape_names.shown(file)
        raise UnwritableError(f"tracefork: cannot write {shown}: {error.strerror}.") from error

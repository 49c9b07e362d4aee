"""`tracefork calibrate`: run an agent a few times to find what changes between runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.agent import child_python, hash_seed
from tracefork_core.cli.agent.agent import Agent
from tracefork_core.cli.calibrate.calibrate_result import Result
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import Divergence, ReplayError, TraceforkError, UsageError

if TYPE_CHECKING:
    from tracefork_core.cli.display.account import Account
    from tracefork_core.explaining.causes import Run
    from tracefork_core.explaining.findings import Finding
    from tracefork_core.tape import Tape

_REPLAYS = 2
_TAIL = 12

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=options.AgentCommand)
@options.grouped
def calibrate(
    ctx: typer.Context,
    agent_words: options.AgentWords,
    tools: options.ToolOptions,
    tape: Annotated[
        str | None,
        typer.Option("--tape", metavar="TAPE", help="Start from this tape instead of a live run."),
    ] = None,
    no_live: Annotated[bool, typer.Option("--no-live", help="Skip the second live run.")] = False,
    as_json: options.AsJson = False,
) -> int:
    """Find what changes between runs, and the line it comes from.

    The agent is recorded live, replayed twice from that tape, and recorded live once more, each
    time in a fresh process; the recordings have different hash seeds. Each difference between them
    is traced to the line that caused it, with a fix. The exit code is 0 if both replays are proven,
    else 1.
    """
    given = tape_names.find(tape) if tape else None
    if given is not None:
        agent, folder = agent_words.read_for(given, ctx)
    else:
        typed, folder = agent_words.read(ctx), Path.cwd()
        if typed is None:
            raise UsageError(
                "tracefork: calibrate needs an agent: a script, a project folder, -m MODULE or "
                "--agent PKG.MOD:FN."
            )
        agent = typed
    return run(agent, folder, given, tools.words, live=not no_live, as_json=as_json)


def run(
    agent: Agent,
    folder: Path,
    given: Path | None,
    tools: list[str],
    *,
    live: bool,
    as_json: bool,
) -> int:
    """Calibrate an agent in a folder, from a tape or a live run; print what was found."""
    from tracefork_core.cli.calibrate.calibrate_report import document, print_findings

    with tempfile.TemporaryDirectory(prefix="tracefork-calibrate-") as place:
        runs = _Runs(agent, folder, Path(place), tools)
        result = _calibrate(runs, given, live=live)
    if agent.form == "proxied":
        result = replace(result, findings=[_ignoring(finding) for finding in result.findings])
    if as_json:
        screen.say_json(document(agent, result))
    else:
        print_findings(agent, result)
    return result.exit


def _ignoring(finding: Finding) -> Finding:
    """Return a finding in the requests of a program that tracefork does not see into."""
    if not finding.pointer.startswith("/"):
        return finding
    fix = f"Replay with --ignore {finding.pointer}"
    return replace(finding, cause=replace(finding.cause, fix=fix), perhaps=False)


@dataclass(frozen=True, slots=True)
class _Done:
    """One run: how its process ended, and the notes that it left."""

    process: child_python.Done
    notes: Run

    @property
    def document(self) -> dict[str, object]:
        return self.process.document

    @property
    def leaks(self) -> list[str]:
        leaks = self.document.get("leaks")
        return [str(leak) for leak in leaks] if isinstance(leaks, list) else []

    @property
    def reason(self) -> str:
        """Why the run failed, with the end of its own output if it broke off."""
        output = self.process.said[-_TAIL:] if self.process.broke_off else []
        return "\n".join([self.process.reason or "the run has no result", *output])


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs an agent in fresh processes, in its own folder; tapes and notes go to `place`."""

    agent: Agent
    folder: Path
    place: Path
    tools: list[str]

    def record(self, name: str, stdin: bytes | None) -> tuple[Path, _Done]:
        """Record the agent live, with this standard input; None for that of this process.

        Raises:
            TraceforkError: the run left no tape.
        """
        tape = self.place / f"{name}.tape"
        words = ["record", "--json", "--boundary=note", f"-o{tape}", *self.tools]
        if self.agent.form == "proxied":
            words = [*self.agent.verb("record"), "--json", str(tape)]
        run = self._run(words, hash_seed.drawn(), stdin)
        if "digest" not in run.document:
            code = run.process.exit or ReplayError.exit_code
            error = type("", (TraceforkError,), {"exit_code": code})
            raise error(f"tracefork: the live run left no tape: {run.reason}")
        return tape, run

    def replay(self, tape: Path, seed: str | None) -> _Done:
        """Replay the agent as `tracefork replay` does."""
        noting = [] if self.agent.form == "proxied" else ["--boundary=note"]
        return self._run([*self.agent.verb("replay"), "--json", *noting, str(tape)], seed)

    def _run(self, words: Sequence[str], seed: str | None, stdin: bytes | None = b"") -> _Done:
        from tracefork_core.cli.calibrate.calibrate_worker import Notes
        from tracefork_core.explaining.causes import Run

        path = self.place / "notes.json"
        path.unlink(missing_ok=True)
        environment = {**os.environ, "TRACEFORK_HOME": str(self.place / "home")}
        command = [
            "tracefork_core.cli.calibrate.calibrate_worker",
            str(path),
            *words,
            *self.agent.argv,
        ]
        seeded = hash_seed.with_seed(environment, seed)
        done = child_python.run(command, self.folder, seeded, stdin)
        notes = child_python.left(path, Notes) if path.exists() else Notes()
        return _Done(done, Run(notes.draws, notes.environment, notes.process))


def _calibrate(runs: _Runs, given: Path | None, *, live: bool) -> Result:
    from tracefork_core.explaining.causes import ON_TAPE, Run
    from tracefork_core.explaining.findings import between_recordings, together
    from tracefork_core.run.captured import REMEDY
    from tracefork_core.tape import Tape

    first = None
    if given is None:
        tape, first = runs.record("first", None)
    else:
        tape = given
    account, seed, outside = _read(tape)
    if outside is not None:
        raise ReplayError(
            f"tracefork: nothing was captured, so there is nothing to calibrate: {outside}. "
            f"{REMEDY}"
        )
    if first is not None:
        outcome = str(first.document.get("outcome", "ok"))
        ended = "" if outcome == "ok" else f" · the agent ended with {outcome}"
        _say(f"recorded live: {_figures(account)}{ended}")
    replays = [runs.replay(tape, seed) for _ in range(_REPLAYS)]
    proven = sum(replay.process.exit == 0 for replay in replays)
    _say(f"replayed: {proven} of {_REPLAYS} proven · $0")
    drawn = [draw for draw in replays[0].notes.draws if draw.source in ON_TAPE]
    before = first.notes if first else Run(drawn)
    replayed = [finding for done in replays for finding in _why(done, before)]
    differed: list[Finding] = []
    runs_done = [*([first] if first else []), *replays]
    if live:
        _say(f"recording live once more (--no-live skips this): {_figures(account)}")
        other, second = runs.record("second", _standard_input(tape))
        runs_done.append(second)
        with Tape.open(tape) as tape1, Tape.open(other) as tape2:
            pair = before, second.notes
            asked = set.intersection(*(_asked(tape1, done) for done in replays))
            left = {n for done in replays if (n := _left(done)) is not None}
            differed = between_recordings(tape1, tape2, pair, asked, left)
    findings = together(replayed, differed)
    named = {finding.cause.site for finding in findings}
    leaks = dict.fromkeys(leak for done in runs_done for leak in done.leaks)
    unseen = [leak for leak in leaks if leak.partition(": ")[0] not in named]
    count = (first is not None) + live
    return Result(count, account.exchanges, (proven, _REPLAYS), findings, unseen)


def _standard_input(path: Path) -> bytes:
    """Return what the recorded run read from standard input, for another live run."""
    from tracefork_core.inputs.standard_input import recorded_bytes
    from tracefork_core.tape import Tape

    with Tape.open(path) as tape:
        return recorded_bytes(tape.standard_input)


def _asked(tape: Tape, done: _Done) -> set[int]:
    """Return the exchanges that a replay is known to have requested as recorded."""
    numbers = {exchange.n for exchange in tape.exchanges}
    if done.process.exit == 0:
        return numbers
    if (n := _left(done)) not in numbers:
        return set()
    lane = tape.exchanges[n].lane  # How far the other lanes had come is not known.
    return {exchange.n for exchange in tape.exchanges[:n] if exchange.lane == lane}


def _left(done: _Done) -> int | None:
    """Return the exchange at which a replay diverged, if it diverged at one."""
    divergence: Any = done.document.get("divergence") or {}
    n: int | None = divergence.get("n")
    return n


def _why(done: _Done, before: Run) -> list[Finding]:
    """Return why a replay was not the recorded run."""
    import msgspec

    from tracefork_core.explaining.causes import Cause
    from tracefork_core.explaining.findings import Finding, at_divergence

    if done.process.exit == 0:
        return []
    if divergence := done.document.get("divergence"):
        return at_divergence(msgspec.convert(divergence, Divergence), (before, done.notes))
    cause = Cause(done.reason, None, on_tape=False, fix="")
    return [Finding((), "", cause, outside=True)]


def _read(path: Path) -> tuple[Account, str | None, str | None]:
    """Return the totals of a tape, its hash seed, and what ran outside if it holds nothing."""
    from tracefork_core.cli.display.account import take_account
    from tracefork_core.run.captured import outside_words
    from tracefork_core.tape import Tape

    with Tape.open(path) as tape:
        if not tape.keeps_bodies:
            raise ReplayError(
                f"tracefork: {path} was recorded in mode metadata, which keeps hashes and no "
                "answers to replay. Record with --mode safe to calibrate."
            )
        environment = tape.environment
        seed = environment.hash_seed if environment else None
        return take_account(tape), seed, outside_words(tape.receipt)


def _figures(account: Account) -> str:
    calls = figures.several(account.model_calls, "model call")
    exchanges = figures.several(account.exchanges, "exchange")
    return " · ".join([f"{exchanges}, {calls}", *account.spending])


def _say(words: str) -> None:
    screen.stderr().print(f"· {printable(words)}", style=screen.DIM, soft_wrap=True)

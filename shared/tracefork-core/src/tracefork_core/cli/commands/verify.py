"""`tracefork verify`: prove that a tape replays, or that its file is undamaged or signed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.agent import child_python, hash_seed
from tracefork_core.cli.agent.agent import Agent
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.card import print_differences
from tracefork_core.cli.display.coverage import coverage_document, coverage_words
from tracefork_core.cli.display.imported import imported_document, imported_words
from tracefork_core.cli.display.replay_report import auxiliary_words
from tracefork_core.cli.display.secrets import secret_words, unsearched_words
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import DivergenceError, TapeError, UsageError

if TYPE_CHECKING:
    from tracefork_core.tape import Receipt
    from tracefork_core.tape.imported import Imported
    from tracefork_core.tape.integrity import Integrity
    from tracefork_core.tape.signature import Verdict

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=options.TapeAndAgent)
@options.grouped
def verify(
    ctx: typer.Context,
    tape: options.TapeName,
    agent_words: options.AgentOrApp,
    times: Annotated[
        int,
        typer.Option(
            "--times", min=1, metavar="N", help="Replay N times, each in a fresh process."
        ),
    ] = 1,
    integrity: Annotated[
        bool, typer.Option("--integrity", help="Only read and hash the whole tape; run nothing.")
    ] = False,
    signed_by: Annotated[
        Path | None,
        typer.Option(
            "--signed-by",
            metavar="PUBKEY",
            help="Only check the signature against this key; run nothing.",
        ),
    ] = None,
    *,
    compared: options.ReplayOptions,
    strict: options.Strict = False,
    as_json: options.AsJson = False,
) -> int:
    """Prove that a tape replays, or that its file is undamaged.

    Every replay runs in a fresh process of this interpreter, so no state of modules leaks from one
    to the next. With --integrity nothing runs: every event and body is read and hashed. With
    --signed-by nothing runs either: the signature beside the tape is checked against a public key.
    """
    path = tape_names.find(tape)
    if integrity or signed_by:
        if agent_words.given or (integrity and signed_by):
            raise UsageError(
                "tracefork: --integrity and --signed-by run no agent. Give one of them, and no "
                "agent."
            )
        return (
            _check_signature(path, signed_by, as_json=as_json)
            if signed_by
            else _check(path, as_json=as_json)
        )
    agent, folder = agent_words.read_for(path, ctx)
    receipt = _receipt(path)
    environment = hash_seed.with_seed(os.environ, receipt.hash_seed)
    switches = [*compared.words, *["--strict"] * strict]
    replays = [_replay(path, agent, folder, switches, environment) for _ in range(times)]
    code = next((replay.exit for replay in replays if replay.exit), 0)
    if as_json:
        screen.say_json(_document(receipt, replays, code))
    else:
        _print(receipt, replays)
    return code


@dataclass(frozen=True, slots=True)
class _Tape:
    """What the tape says about itself; `receipt` is None if the recording was cut off."""

    path: Path
    shown: str
    digest: str
    exchanges: int
    receipt: Receipt | None
    mode: str
    hash_seed: str | None
    imported: Imported | None


def _receipt(path: Path) -> _Tape:
    from tracefork_core.tape import Tape

    with Tape.open(path) as tape:
        return _Tape(
            path,
            tape_names.shown(path),
            tape.digest,
            len(tape.exchanges),
            tape.receipt,
            tape.mode,
            tape.hash_seed,
            tape.imported,
        )


def _replay(
    path: Path,
    agent: Agent,
    folder: Path,
    switches: Sequence[str],
    environment: Mapping[str, str],
) -> child_python.Done:
    words = [*agent.verb("replay"), "--json", *switches, str(path), *agent.argv]
    return child_python.run(["tracefork_core.cli.main", *words], folder, environment)


def _document(tape: _Tape, replays: Sequence[child_python.Done], code: int) -> dict[str, object]:
    return {
        "command": "verify",
        "exit": code,
        "tape": str(tape.path),
        "tape_digest": tape.digest,
        "exchanges": tape.exchanges,
        "complete": tape.receipt is not None,
        "coverage": coverage_document(tape.receipt) if tape.receipt else None,
        "mode": tape.mode,
        "imported": imported_document(tape.imported),
        "secrets": tape.receipt.secrets if tape.receipt else None,
        "unsearched": tape.receipt.unsearched if tape.receipt else None,
        "times": len(replays),
        "same": sum(replay.exit == 0 for replay in replays),
        "replays": [replay.document for replay in replays],
    }


def _print(tape: _Tape, replays: Sequence[child_python.Done]) -> None:
    from rich.text import Text

    from tracefork_core.run.captured import EMPTY

    console = screen.stdout()
    same = sum(replay.exit == 0 for replay in replays)
    good = same == len(replays)
    share = f"{same} of {figures.several(len(replays), 'replay')} proven"
    mark = Text("✓ " if good else "✗ ", screen.GOOD if good else screen.BAD)
    if good and not tape.exchanges:
        mark, share = Text("· "), EMPTY
    console.print(mark.append(f"{tape.shown} · {share}", "default"), soft_wrap=True)
    last = next((replay for replay in replays if replay.exit), replays[-1])
    facts = {
        "tape digest": tape.digest,
        "replay digest": printable(str(last.document.get("digest") or figures.UNKNOWN)),
        "exchanges": f"{last.document.get('exchanges', figures.UNKNOWN)} of {tape.exchanges}",
        "sockets": str(last.document.get("sockets", figures.UNKNOWN)),
        "recording": _recording_words(tape),
    }
    if words := _auxiliary_words(last.document):
        facts["token counts"] = words
    if tape.imported and tape.imported.not_proven:
        facts["not proven"] = " · ".join(tape.imported.not_proven)
    if tape.receipt and tape.receipt.secrets:
        facts["secrets masked"] = secret_words(tape.receipt.secrets)
    if tape.receipt and tape.receipt.unsearched:
        facts["secrets unknown"] = unsearched_words(tape.receipt.unsearched)
    for name, value in facts.items():
        console.print(Text(f"  {name:<15}", screen.DIM).append(value, "default"), soft_wrap=True)
    if not good:
        _print_failure(last)
    if isinstance(differences := last.document.get("differences"), list):
        print_differences(console, [str(difference) for difference in differences])


def _auxiliary_words(document: Mapping[str, object]) -> str:
    counts = (document.get(name) for name in ("auxiliary_left", "auxiliary_misses"))
    return auxiliary_words(*(count if isinstance(count, int) else 0 for count in counts))


def _recording_words(tape: _Tape) -> str:
    if tape.receipt is None:
        return "incomplete: it was cut off, so its coverage is unknown"
    return imported_words(tape.imported) if tape.imported else coverage_words(tape.receipt)


def _print_failure(replay: child_python.Done) -> None:
    """Print the card of a replay that diverged, or the end of the output of one that failed."""
    import msgspec

    from tracefork_core.cli.display.card import print_card
    from tracefork_core.errors import Divergence

    console = screen.stdout()
    if divergence := replay.document.get("divergence"):
        agent = replay.document.get("agent")
        words = None if agent is None else str(agent)
        print_card(console, msgspec.convert(divergence, Divergence), agent=words)
        return
    console.print(f"  {printable(replay.reason, lines=True)}", soft_wrap=True)
    for line in replay.said:
        console.print(f"  │ {printable(line)}", style=screen.DIM, soft_wrap=True)


def _check(path: Path, *, as_json: bool) -> int:
    from dataclasses import asdict

    from tracefork_core.tape.integrity import check_integrity

    result = check_integrity(path)
    code = TapeError.exit_code if result.damage else 0
    imported = None if result.damage or result.sealed else _imported(path)
    if as_json:
        document = {"command": "verify", "exit": code, "tape": str(path), **asdict(result)}
        screen.say_json({**document, "imported": imported_document(imported)})
    else:
        _print_integrity(tape_names.shown(path), result, imported)
    return code


def _imported(path: Path) -> Imported | None:
    from tracefork_core.tape import Tape

    with Tape.open(path) as tape:
        return tape.imported


def _print_integrity(shown: str, result: Integrity, imported: Imported | None) -> None:
    from rich.text import Text

    console = screen.stdout()
    good = not result.damage
    state = "undamaged" if good else figures.several(len(result.damage), "damaged place")
    mark = Text("✓ " if good else "✗ ", screen.GOOD if good else screen.BAD)
    bodies = figures.several(result.blobs, "body", "bodies")
    read = f"{figures.several(result.events, 'event')}, {bodies}"
    words = f"{shown} · {state} · {read} read and hashed"
    console.print(mark.append(words, "default"), soft_wrap=True)
    for damage in result.damage:
        console.print(f"  {printable(damage.where)}: {printable(damage.what)}", soft_wrap=True)
    if result.digest and good:
        console.print(f"  digest {result.digest}", soft_wrap=True)
    if imported is not None:
        console.print(f"  {imported_words(imported)}", soft_wrap=True)
    if result.sealed:
        console.print(
            "  sealed: the file and its rows are as they were written. To check the content,"
        )
        console.print("  set TRACEFORK_IDENTITY or TRACEFORK_PASSPHRASE")
    elif good and not result.complete:
        console.print("  incomplete: the recording was cut off, so there is no receipt to compare")


def _check_signature(path: Path, key: Path, *, as_json: bool) -> int:
    """Check who signed a tape; return 0 for this very file, 1 for its run in another file.

    Raises:
        UsageError: there is no signature, or the key cannot be used.
        TapeError: the signature is invalid, or belongs to another key or another run.
    """
    from tracefork_core.tape import Tape, signature

    with Tape.open(path) as tape:
        verdict = signature.verify(path, tape.digest, key)
    code = 0 if verdict.file else DivergenceError.exit_code
    if as_json:
        screen.say_json(
            {
                "command": "verify",
                "exit": code,
                "tape": str(path),
                "signed_by": verdict.key,
                "fingerprint": signature.fingerprint(verdict.key),
                "digest": verdict.statement.digest,
                "same_run": True,
                "same_file": verdict.file,
            }
        )
    else:
        _print_signature(path, verdict)
    return code


def _print_signature(path: Path, verdict: Verdict) -> None:
    from rich.text import Text

    from tracefork_core.tape.signature import fingerprint

    console = screen.stdout()
    mark = Text("✓ ", screen.GOOD) if verdict.file else Text("✗ ", screen.BAD)
    what = "the run and this file are signed" if verdict.file else "another file is signed"
    console.print(mark.append(f"{tape_names.shown(path)} · {what}", "default"))
    facts = {"key": fingerprint(verdict.key), "digest": verdict.statement.digest}
    for name, value in facts.items():
        line = Text(f"  {name:<15}", screen.DIM).append(printable(value), "default")
        console.print(line, soft_wrap=True)
    if not verdict.file:
        console.print(
            "  The run is the one that was signed: every request and answer. The file is not: "
            "its times, steps, random draws and chunk boundaries may have been changed. If you "
            "wrote the file yourself, sign it again.",
            soft_wrap=True,
        )

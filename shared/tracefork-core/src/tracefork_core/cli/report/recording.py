"""The facts of a recording: where it was made, what was captured, masked, and out of sight."""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.cli.display import figures
from tracefork_core.cli.display.account import Account
from tracefork_core.cli.display.coverage import coverage_words, unseen_words
from tracefork_core.cli.display.imported import imported_words
from tracefork_core.cli.display.secrets import secret_words, unsearched_words
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.report.document import Totals
from tracefork_core.run.untaped import untaped_words
from tracefork_core.tape import Tape

_PACKAGES = 24


def totals(account: Account) -> Totals:
    """Return the totals of a run."""
    asked, answered = account.tokens or (None, None)
    return Totals(
        account.model_calls,
        account.tools,
        account.exchanges - account.model_calls - account.tools,
        list(account.models),
        asked,
        answered,
        None if account.cost is None else figures.money(account.cost),
        account.wire,
    )


def facts(tape: Tape) -> Iterator[tuple[str, str]]:
    """Yield what is known of where and how a recording was made."""
    yield "digest", tape.digest
    yield "stores", f"mode {tape.mode}"
    if imported := tape.imported:
        yield "imported", f"{imported_words(imported)}, sha256 {imported.sha256}"
    environment = tape.environment
    if environment is None:
        return
    yield "tracefork", printable(environment.tracefork)
    yield "python", printable(environment.python)
    yield "platform", printable(environment.platform)
    if environment.git_commit:
        yield "commit", printable(environment.git_commit)
    for name, version in sorted(environment.packages.items())[:_PACKAGES]:
        yield printable(name), printable(version)


def coverage(tape: Tape) -> list[str]:
    """Return how much of the run was captured."""
    if tape.receipt is None:
        return ["The recording was cut off, so its coverage is unknown."]
    if imported := tape.imported:
        return [imported_words(imported)]
    return [coverage_words(tape.receipt)]


def masked(tape: Tape) -> list[str]:
    """Return which secrets were kept off the tape."""
    receipt = tape.receipt
    words = []
    if receipt and receipt.secrets:
        words.append(secret_words(receipt.secrets))
    if receipt and receipt.unsearched:
        words.append(unsearched_words(receipt.unsearched))
    return words


def limits(tape: Tape, account: Account) -> list[str]:
    """Return what tracefork cannot see or prove of this run."""
    words = []
    if not tape.keeps_bodies:
        words.append("The tape holds hashes of bodies alone (mode metadata): no text can be shown.")
    words += map(printable, tape.imported.missing if tape.imported else ())
    if account.untaped:
        words.append(printable(untaped_words(account.untaped, "A replay runs {} again.")))
    receipt = tape.receipt
    if receipt and receipt.unwatched:
        words.append(unseen_words(receipt.unwatched).removeprefix("! "))
    return words

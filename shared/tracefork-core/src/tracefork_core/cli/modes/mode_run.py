"""One replay in a mode: what it runs again, and what it compares."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from contextlib import AbstractContextManager, chdir, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracefork_core.cli.agent import hash_seed
from tracefork_core.cli.exits import DIFFERENT, FAILED, SAME
from tracefork_core.cli.modes import pinned
from tracefork_core.cli.modes.mode import Mode, ModeOptions
from tracefork_core.errors import UsageError
from tracefork_core.run.untaped import repeated_tools, untaped_words

if TYPE_CHECKING:
    from tracefork_core.cli.display.replay_report import Verdict
    from tracefork_core.cli.modes.modes_report import Compared
    from tracefork_core.cli.modes.verifications import Verification
    from tracefork_core.evidence.actions import Action
    from tracefork_core.evidence.patch import Patch
    from tracefork_core.seams.tools.verifying import Verifying
    from tracefork_core.tape import Tape

_TOOL = "tool:"
_SHOWN = 8


@dataclass(slots=True)
class ModeRun:
    """A replay in mode strict or hybrid.

    Attributes:
        mode: the mode.
        path: the tape.
        bundle: the folder for the evidence.
        actions: the actions on the tape.
        patch: what its tools changed.
        accepted: how this environment differs from the recorded one, where that was accepted.
        wanted: the verifiers; None in mode strict.
        verified: what they returned, once the replay has ended.
    """

    mode: Mode
    path: Path
    bundle: Path | None
    actions: list[Action]
    patch: Patch
    accepted: list[str]
    wanted: Verifying | None
    verified: list[Verification] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path, options: ModeOptions, folder: Path) -> ModeRun:
        """Read a tape for a replay in a mode, in the folder where the agent will run.

        Raises:
            UsageError: verifiers would run in another environment than the recorded one, a tool
                that is not on the tape would run again, or a named tool was not called.
        """
        from tracefork_core.evidence.actions import actions
        from tracefork_core.evidence.patch import patch_of
        from tracefork_core.seams.tools.verifying import Verifying
        from tracefork_core.tape import Tape

        accepted: list[str] = []
        wanted = None
        with Tape.open(path) as tape:
            done = actions(tape)
            if options.mode is not None:
                accepted = _check_untaped(tape, options)
            if options.chosen == Mode.HYBRID:
                writes = frozenset(options.allow_write or ())
                container = tuple(shlex.split(options.container or ""))
                names = frozenset(options.verifier or ()) | writes
                _check_names(options.verifier or (), tape)
                if not container:
                    with chdir(folder):  # A lockfile is looked for from there upwards.
                        accepted += pinned.check(tape.environment, unpinned=options.unpinned)
                wanted = Verifying(names, writes, times=options.runs, container=container)
        bundle = options.bundle and options.bundle.absolute()
        return cls(options.chosen, path, bundle, done, patch_of(done), accepted, wanted)

    def close_network(self) -> None:
        """Close the network for what verifiers start, too, if the kernel lets us."""
        if self.wanted is not None and not self.wanted.container and hash_seed.is_own_process:
            from tracefork_core.cli.gate.namespace import close_network

            close_network()

    def verifying(self) -> AbstractContextManager[None]:
        """Run verifiers again while the block lasts."""
        if self.wanted is None:
            return nullcontext()
        from tracefork_core.seams.tools.verifying import verifying

        return verifying(self.wanted)

    def judged(self, verdict: Verdict) -> Verdict:
        """Return a verdict with what the mode found, and write the evidence."""
        from tracefork_core.cli.modes.verifications import verifications

        if self.wanted is not None:
            self.verified = verifications(self.actions, self.wanted.runs)
        problem = self._problem() if verdict.exit == SAME else None
        if problem is not None:
            verdict = replace(verdict, exit=problem[0], reason=problem[1])
        if self.bundle is not None:
            write_evidence(self.path, self.bundle, {"exit": verdict.exit, **self.document()})
        return replace(verdict, mode=tuple(self._compared().notes()))

    def document(self) -> dict[str, object]:
        """Return what the mode found as JSON-able values."""
        return self._compared().document()

    def _compared(self) -> Compared:
        from tracefork_core.cli.modes.modes_report import Compared

        refused = self.wanted.refused if self.wanted else ()
        return Compared(self.mode, self.actions, self.patch, self.verified, refused, self.accepted)

    def _problem(self) -> tuple[int, str] | None:
        if self.wanted is None:
            return None
        if not self.verified:
            return FAILED, "no verifier ran, so a hybrid replay proves no more than a strict one"
        bad = [one for one in self.verified if one.verdict != "same"]
        if bad:
            return DIFFERENT, f"the verifier {bad[0].tool} ended another way: {bad[0].words}"
        return None


def _check_untaped(tape: Tape, options: ModeOptions) -> list[str]:
    """Refuse to run a tool again that is not on the tape, unless it was allowed by its name."""
    tools = repeated_tools(tape)
    allowed = options.allow_write or ()
    if refused := {name: count for name, count in tools.items() if name not in allowed}:
        name = next(iter(refused))
        then = f"Mode {options.chosen} would run {{}} again."
        raise UsageError(
            f"tracefork: {untaped_words(refused, then)} Allow it with --allow-write "
            f"{shlex.quote(name)}. Or record it as a tool: @tracefork.tool above the function."
        )
    return [f"{name} is not on the tape, and ran again" for name in tools]


def _check_names(names: Iterable[str], tape: Tape) -> None:
    """Refuse the name of a tool that no call on the tape has: it may be misspelt."""
    urls = dict.fromkeys(exchange.url for exchange in tape.exchanges)
    held = [url.removeprefix(_TOOL) for url in urls if url.startswith(_TOOL)]
    for name in sorted(set(names) - {*held}):
        has = (
            f"It has calls of {', '.join(held[:_SHOWN])}."
            if held
            else "It holds no call of a tool."
        )
        raise UsageError(
            f"tracefork: the tape has no call of a Python function {name} that is a tool. {has} "
            "Name one of them: tools of MCP servers and untaped functions cannot run again."
        )


def write_evidence(path: Path, folder: Path, verdict: dict[str, object]) -> None:
    """Write the evidence of a tape into a folder.

    Raises:
        UsageError: the folder holds something.
    """
    from tracefork_core.evidence.bundle import write_bundle
    from tracefork_core.tape import Tape

    kept = {name: value for name, value in verdict.items() if name not in ("actions", "patch")}
    with Tape.open(path) as tape:
        write_bundle(tape, folder, kept)

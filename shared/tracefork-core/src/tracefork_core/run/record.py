"""Record a run: every exchange is live and goes onto the tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracefork_core.chance.chance import Chance
from tracefork_core.chance.guard.boundary import Mode as Boundary
from tracefork_core.chance.nondet_source import NondetSource
from tracefork_core.errors import TapeError, TraceforkError, UsageError
from tracefork_core.masking.masking import Masking
from tracefork_core.masking.masks import Masks
from tracefork_core.run.scope import Covers, Scope, Switches
from tracefork_core.run.writing import Writing, environment_under
from tracefork_core.seams.tools.named_tools import NamedTools
from tracefork_core.seams.tools.tool_names import ToolName, read_names
from tracefork_core.session.session import Session
from tracefork_core.tape import Receipt, TapeWriter
from tracefork_core.tape.schema import Mode as Keeps
from tracefork_core.tape.sealing import new_key
from tracefork_core.telemetry.work import Value, Work


@dataclass(slots=True)
class Recording:
    """A run that is being recorded. `receipt` is there once the block has ended.

    `nondet` gives the time, ids and random values with nothing patched, on the tape. `leaks` says
    what went past the tape, where a boundary is guarded.
    """

    path: Path
    nondet: NondetSource
    receipt: Receipt | None = None
    leaks: list[str] = field(default_factory=list)

    @property
    def digest(self) -> str | None:
        """The digest of the run, once the block has ended."""
        return self.receipt.digest if self.receipt else None

    @property
    def untaped(self) -> dict[str, int]:
        """The tools that ran without being on the tape, with the number of their calls."""
        from tracefork_core.run.untaped import untaped_tools

        return untaped_tools(self.path) if self.receipt else {}


@dataclass(frozen=True, slots=True)
class _Options:
    """What `record` is asked for, as its docstring says."""

    overwrite: bool
    offline: bool
    mode: Keeps
    mask: Sequence[str]
    seal_to: Sequence[str]
    strict: bool
    tools: Sequence[ToolName]


class _Record(Writing[Recording]):
    def __init__(self, path: Path, switches: Switches, options: _Options) -> None:
        super().__init__(switches)
        self._path = path
        self._options = options

    def _begin(self, stack: ExitStack) -> Recording:
        options = self._options
        if options.mask and options.mode == "raw":
            raise UsageError(
                "tracefork: mode `raw` masks nothing: leave `mask` (--mask) away, or the mode."
            )
        masking = Masking(options.mode, Masks.read(options.mask))
        self._tools = NamedTools(options.tools)
        self._tools.check()
        environment = environment_under(masking, self._tools)
        if options.seal_to and options.mode != "sealed":
            raise UsageError(
                "tracefork: `seal_to` (--to) is for the mode `sealed` (--mode sealed)."
            )
        key = new_key(options.seal_to) if options.mode == "sealed" else None
        self._writer = TapeWriter(
            self._path, environment, overwrite=options.overwrite, mode=options.mode, key=key
        )
        stack.callback(self._abort_unless_switched_on)
        self._session = Session(sink=self._writer, masking=masking, strict=options.strict)
        chance = Chance(self._session)
        self._write(stack, environment, "offline" if options.offline else "count", chance)
        self._run = Recording(self._path, chance.nondet, leaks=self._leaks)
        return self._run

    def _abort_unless_switched_on(self) -> None:
        if not self._is_switched_on:
            self._writer.abort()

    def _finish(self, error: BaseException | None) -> TraceforkError | None:
        closed = self._closed(error)
        if isinstance(closed, TapeError):
            return closed
        self._run.receipt = closed
        return self._session.poison

    def _facts(self, work: Work) -> dict[str, Value]:
        facts = {**super()._facts(work), "tracefork.mode": self._options.mode}
        return facts | ({"tracefork.digest": self._run.digest} if self._run.digest else {})


def record(
    path: str | Path,
    *,
    overwrite: bool = False,
    ambient: bool = True,
    clock: bool = True,
    entropy: bool = True,
    subprocesses: bool = True,
    offline: bool = False,
    mode: Keeps = "safe",
    mask: Sequence[str] = (),
    seal_to: Sequence[str] = (),
    strict: bool = False,
    boundary: Boundary | None = None,
    scope: Covers = "context",
    tools: Sequence[str | Callable[..., Any]] = (),
    tools_of: Sequence[str] = (),
) -> Scope[Recording]:
    """Record what runs inside: a sync or async `with`, or a function it decorates.

    Args:
        path: where the tape goes; its folder must exist.
        overwrite: replace a tape of that name. Nothing is overwritten unasked.
        ambient: instrument the HTTP libraries; False records bound clients only.
        clock: put reads of the wall clock on the tape.
        entropy: put random values and ids on the tape, as a seed: `random`, `uuid`, `secrets`,
            `os.urandom`.
        subprocesses: whether other programs may be started.
        offline: refuse every connection, as at replay: for agents whose models are in the process.
        mode: `safe` keeps the values of secret environment variables and known tokens off the
            tape; `sealed` encrypts what is left; `metadata` keeps hashes for bodies, and does not
            replay; `raw` drops only credentials in headers and URLs.
        mask: what is secret besides: names of environment variables, `re:` and a pattern of bytes.
        seal_to: age public keys of those who may read a sealed tape; without any, who holds the
            passphrase in TRACEFORK_PASSPHRASE.
        strict: stop the agent, too, where the tape cannot be written any more.
        boundary: name the lines that draw from sources the tape does not hold: `warn` with a
            BoundaryWarning for each, `raise` with a BoundaryError.
        scope: what the session covers. "context" is what is started from the block: its tasks,
            threads, jobs of pools and child processes. "process" is everything in this process.
        tools: functions whose calls are exchanges, as those of `@tool` are: "agent:charge_card",
            "agent:Bank.charge=write", or the function itself. The tape holds their names, so a
            replay and a fork find them again.
        tools_of: tables of such functions: "agent:TOOLS", a list, a tuple, a set or a dict.

    Raises:
        UsageError: the tape exists, or its folder does not; no such mode; nothing to be masked; a
            function that is named as a tool does not exist.
        TapeError: the tape cannot be written. The agent is not stopped by it, unless it is asked
            for: the error is raised when the block ends.
        EgressError: something tried to leave while offline. Raised where it happens and again when
            the block ends.
    """
    # What keeps no bodies does not replay: its chance stays real, and unknown.
    entropy = entropy and mode != "metadata"
    switches = Switches(ambient, clock, entropy, subprocesses, boundary, scope)
    names = read_names(tools, tools_of)
    options = _Options(overwrite, offline, mode, mask, seal_to, strict, names)
    return _Record(Path(path), switches, options)

"""The events of a tape: their fields, and which part of them the digest covers.

Every event has two JSON documents. The *payload* is what crossed the boundary; the digest covers
it. The *aside* is everything about the recording itself: clock times, lane and step, chunk
boundaries, the order of deliveries, headers that are not compared. Readers skip unknown kinds and
fields, and `rewrite` keeps them. A field that a reader must understand to replay needs a new format
version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

EXCHANGE = "exchange"
STEP = "step"
STEP_END = "step_end"
DRAWS = "draws"
BRANCH = "branch"
TURNS = "turns"
ENVIRONMENT = "environment"
RECEIPT = "receipt"

Pairs = list[tuple[str, str]]

# Records that exist by the ten thousand have no cycles: `gc=False` saves the collector the search.


class RequestRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A request as replay compares it: canonical URL, semantic headers, sha256 of the body."""

    method: str
    url: str
    headers: Pairs
    body: str


class ResponseRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A response: status, headers in wire order (the aside has values that are None), body."""

    status: int
    reason: str
    headers: list[tuple[str, str | None]]
    body: str


class FailureRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The exception that ended an attempt."""

    kind: str
    message: str


class ExchangePayload(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What crossed the boundary. `n` counts requests in the order in which they were sent."""

    n: int
    request: RequestRecord
    response: ResponseRecord | None = None
    failure: FailureRecord | None = None


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A file that a tool changed: SHA-256 of its first MiB before and after; None if missing."""

    path: str
    before: str | None = None
    after: str | None = None


class SideEffects(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a call of a tool changed besides returning a result.

    Attributes:
        files: the files that differ.
        unseen: what may have changed others: "subprocess git", "a thread".
        more: how many files were not noted, because there were too many.
    """

    files: list[FileChange] = []
    unseen: list[str] = []
    more: int = 0


class ExchangeAside(msgspec.Struct, omit_defaults=True, gc=False):
    """The recording of one exchange. Times are nanoseconds since the epoch; durations nanoseconds.

    Attributes:
        lane: the thread or task that sent the request.
        seam: the library that sent it.
        started: when it was sent.
        answered: "recorded" or "given" if a fork answered it, and not the provider.
        step: the id of the step that sent it.
        caller: the line of the agent that sent it.
        url: the URL that was sent, if a matcher made another one of it.
        sent: request headers that are not compared.
        received: values of response headers that the digest does not cover.
        sizes: the lengths of the chunks of the response body.
        turns: the position of each delivery (head or failure, each chunk, end) among all deliveries
            of the run, as runs [first, count].
        pace: the milliseconds before each delivery, if the body arrived in several chunks.
        end: "eof", "abandoned", "failed", "cancelled", or "open" (in flight when the recording
            ended or was cut off).
        first_byte, took: durations until the head of the response, and until the end.
        effect: its declared side effect: "read", "write" or "pure".
        place: the number of the parent's exchange that it replaces on a branch.
        checkpoint: the thread and the id of the checkpoint that the framework ran from.
        in_step: the lane, counted from the start of the framework's step, if that differs.
        auxiliary: whether a replay may send more or fewer of such requests: token counts, reports.
        rounds: rounds of the event loop from its cancellation to its end.
        side_effects: what a tool changed; None if it was not watched.
        unsearched: "request", "response" or both: bodies whose content coding could not be removed,
            so that they were not searched for secrets.
    """

    lane: str
    seam: str
    started: int
    answered: str = ""
    step: str | None = None
    caller: str | None = None
    url: str | None = None
    sent: Pairs = []
    received: dict[str, str] = {}
    http_version: str = "HTTP/1.1"
    sizes: list[int] = []
    turns: list[list[int]] = []
    pace: list[int] = []
    end: str = "open"
    first_byte: int | None = None
    took: int | None = None
    effect: str | None = None
    place: int | None = None
    checkpoint: tuple[str, str] | None = None
    in_step: str | None = None
    auxiliary: bool = False
    rounds: int = 0
    unsearched: list[str] = []
    side_effects: SideEffects | None = None


class StepRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node of the step graph. `kind` is run, crew, agent, task, node, model, tool or another."""

    id: str
    kind: str
    name: str
    parent: str | None = None
    started: int = 0
    ended: int | None = None
    error: str | None = None
    detail: dict[str, object] = {}


class StepEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """The end of a step, in nanoseconds since the epoch. `kind` replaces the kind it began with."""

    id: str
    ended: int
    error: str | None = None
    kind: str | None = None


class Reads(msgspec.Struct, frozen=True, omit_defaults=True):
    """The draws at one call site of one lane.

    For the source "clock", `values` are the first value and then differences; for "entropy", the
    number of draws.
    """

    source: str
    lane: str
    site: str
    values: list[int]


class GeneratorState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first state of a generator that the process shares: "random" or "numpy".

    `lane` is the one that continues from it; other lanes get generators of their own.
    """

    name: str
    state: bytes
    lane: str = ""


class Draws(msgspec.Struct, frozen=True, omit_defaults=True):
    """The draws since the last exchange.

    The first record of a run also has the sources that were recorded for the whole process
    (`ambient`: "clock", "entropy"), and the `seed` of all random bytes.
    """

    reads: list[Reads]
    seed: bytes | None = None
    generators: list[GeneratorState] = []
    ambient: list[str] | None = None


class Environment(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the recording was made, and how secrets were kept off it.

    `masks` lists what was masked besides secret variables: names of variables, "re:1" for the first
    pattern (never its text), and the version of the known tokens. `hash_seed` is the PYTHONHASHSEED
    of the process; None if its hashes were random. `tools` names the functions that were made
    tools, with `=` and their effect if it was declared, and `tools_of` the tables of such.
    `git_dirty` says whether files that git tracks differed from the commit; None if that is not
    known. `lockfile` is the nearest file that pins packages, as its name and SHA-256.
    """

    python: str
    platform: str
    tracefork: str
    packages: dict[str, str] = {}
    git_commit: str | None = None
    git_dirty: bool | None = None
    lockfile: tuple[str, str] | None = None
    command: list[str] = []
    started: int = 0
    masks: list[str] = []
    hash_seed: str | None = None
    tools: list[str] = []
    tools_of: list[str] = []


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """The summary of a closed recording.

    Seams made `crossed` of its `connections`; `strays` names the others, and `subprocesses` the
    programs that it started. `outcome` is "ok" or the name of the exception, and `status` the exit
    status of a run that ended with a `SystemExit`. `secrets` counts
    masked secrets by name. `left_alone` counts the requests that other work of the process made.
    `unused_tools` lists the names of tools that had no effect on the run, and why. `unsearched`
    counts the bodies that could not be unpacked to search them for secrets. `replaced` lists clocks
    and sources of randomness that the program had replaced by functions of its own. `unwatched`
    names the loaded modules whose connections are made in native code.
    """

    digest: str
    exchanges: int
    took: int = 0
    connections: int = 0
    crossed: int = 0
    strays: list[str] = []
    subprocesses: list[str] = []
    outcome: str = "ok"
    status: int | None = None
    secrets: dict[str, int] = {}
    left_alone: int = 0
    unused_tools: list[str] = []
    unsearched: int = 0
    replaced: list[str] = []
    unwatched: list[str] = []

    @property
    def has_failed(self) -> bool:
        """Whether the run is known to have ended badly: of an imported one, that may be unknown."""
        return self.outcome not in ("ok", "unknown")


_DEEPEST = 64


def steps_down_to(step: str | None, by_id: Mapping[str, StepRecord]) -> tuple[StepRecord, ...]:
    """Return the steps from the root down to this one; of a corrupt circle, some."""
    found: list[StepRecord] = []
    while step is not None and (record := by_id.get(step)) and len(found) < _DEEPEST:
        found.append(record)
        step = record.parent
    return tuple(reversed(found))


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """An intervention of a fork at exchange `n` of its parent, and its arguments."""

    n: int
    kind: str
    detail: dict[str, object] = {}


class Stop(msgspec.Struct, frozen=True):
    """The request that a fork was stopped before. Its branch ends there, and a replay does, too.

    Attributes:
        method, url: as they are shown; the URL has no query.
        lane: the thread or task that asked.
        request: the hash of its canonical record, which a replay compares.
        is_write: whether it was refused because it may have a side effect.
    """

    method: str
    url: str
    lane: str
    request: str
    is_write: bool

    @property
    def words(self) -> str:
        """Return "stopped before POST http://…, a refused write"."""
        why = ", a refused write" if self.is_write else ""
        return f"stopped before {self.method} {self.url}{why}"


class Branch(msgspec.Struct, frozen=True, omit_defaults=True):
    """What makes a branch differ from its parent, from exchange `at` on.

    Attributes:
        changes: the interventions.
        writes: how calls with side effects were handled: "refuse", "stub" or "allow".
        reads: names of tools that were declared to read only.
        is_rerun: whether the agent ran again without a fork point.
        tail: the edit of every model call without an intervention of its own.
        salt: past the fork point, a lane draws under its name, "~" and this, if it is set.
        reuse: whether requests equal to the parent's got the parent's answers.
        skipped: exchanges of the parent that it skipped, because it began in the middle.
        anew: the fork points and salts of the branches that it is a branch of.
        stop: the request that the fork stopped before; None if the agent ran to its end.
    """

    at: int
    changes: list[Change] = []
    writes: str = "refuse"
    tail: dict[str, object] = {}
    salt: str | None = None
    reuse: bool = False
    skipped: list[int] = []
    anew: list[tuple[int, str]] = []
    reads: list[str] = []
    is_rerun: bool = False
    stop: Stop | None = None


class Moved(msgspec.Struct, frozen=True):
    """Which turns shared deliveries have on a branch.

    Before turn `since` of the parent, they have the parent's turns. From there on, `turns` are
    pairs of the parent's turn and the branch's. Several such events add up.
    """

    since: int
    turns: list[tuple[int, int]]


class Structure(msgspec.Struct, frozen=True):
    """What a sealed tape reveals without its key."""

    exchanges: int


class Event(msgspec.Struct, frozen=True, gc=False):
    """An event as it lies in a tape, its two documents not decoded."""

    kind: str
    payload: msgspec.Raw = msgspec.Raw(b"{}")
    aside: msgspec.Raw = msgspec.Raw(b"{}")


def line(kind: str, payload: bytes, aside: bytes) -> bytes:
    """Return an event as the line of JSON that a tape holds."""
    return b'{"kind":"%b","payload":%b,"aside":%b}\n' % (kind.encode(), payload, aside)


_event = msgspec.json.Decoder(Event).decode


def events(lines: bytes) -> Iterator[Event]:
    """Yield the events of a segment.

    Raises:
        msgspec.MsgspecError: a line is not an event.
    """
    start = 0
    while (end := lines.find(b"\n", start)) >= 0:
        yield _event(memoryview(lines)[start:end])
        start = end + 1


class _Numbered(msgspec.Struct):
    n: int


_numbered = msgspec.json.Decoder(_Numbered).decode


def numbered_payloads(recorded: Iterable[Event]) -> list[bytes]:
    """Return the payloads of exchanges in the order asked."""
    payloads = (bytes(event.payload) for event in recorded if event.kind == EXCHANGE)
    return sorted(payloads, key=lambda payload: _numbered(payload).n)

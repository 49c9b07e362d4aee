"""The events of a tape: what they hold, and which part of them the digest covers.

Every event has two JSON documents. The *payload* is what crossed the boundary: the digest covers
it. The *aside* is everything about the recording itself: clock times, lane and step, chunk
boundaries, the order of deliveries, headers nobody compares. Unknown kinds and unknown fields are
kept in the file and skipped by readers; a reader that must understand a new field to replay needs
a new format version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

EXCHANGE = "exchange"
STEP = "step"
STEP_END = "step_end"
DRAWS = "draws"
SURROUNDINGS = "surroundings"
BRANCH = "branch"
TURNS = "turns"
ENVIRONMENT = "environment"
RECEIPT = "receipt"

Pairs = list[tuple[str, str]]

# Records that come by the ten thousand hold no cycles: `gc=False` spares the collector the search.


class RequestRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A request as it is compared: canonical URL, semantic headers, sha256 of the body."""

    method: str
    url: str
    headers: Pairs
    body: str


class ResponseRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A response: status line, headers in wire order (a value of None lies in the aside), body."""

    status: int
    reason: str
    headers: list[tuple[str, str | None]]
    body: str


class FailureRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The exception an attempt ended in."""

    kind: str
    message: str


class ExchangePayload(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What crossed the boundary. `n` counts requests in the order they were asked."""

    n: int
    request: RequestRecord
    response: ResponseRecord | None = None
    failure: FailureRecord | None = None


class ExchangeAside(msgspec.Struct, omit_defaults=True, gc=False):
    """About the recording of one exchange. Times are nanoseconds since the epoch, or durations.

    `sizes` are the chunk lengths of the response body in order. `turns` is the place of each of
    its deliveries (head or failure, each chunk, end) among all deliveries of the run, as runs
    [first, count]. `sent` are request headers that are not compared, `received` the values of
    response headers outside the digest, `url` what was really sent where a matcher canonicalised
    it. `end` is "eof", "abandoned", "failed", "cancelled" or "open" (still in flight when the
    recording ended, or was cut off). `pace` are the milliseconds before each delivery, where a body
    came in several chunks. `answered` is "recorded" or "given" where a fork did it and not the
    world, `place` the exchange of its parent in whose place it is. `effect` is what it does to the
    world ("read", "write", "pure") where that was declared. `checkpoint` is the thread and the id
    of the checkpoint that the agent's framework was running from, `in_step` the lane, counted from
    the beginning of the framework's step, where that is another name. `auxiliary` are those that a
    replay may ask more or fewer of: token counts, and reports. `rounds` are those of the event loop
    that went by from its cancellation to its end.
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


class StepRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node of the step DAG. `kind` is run, crew, agent, task, node, model, tool or another."""

    id: str
    kind: str
    name: str
    parent: str | None = None
    started: int = 0
    ended: int | None = None
    error: str | None = None
    detail: dict[str, object] = {}


class StepEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """The end of a step, in nanoseconds since the epoch. `kind` is what it turned out to be."""

    id: str
    ended: int
    error: str | None = None
    kind: str | None = None


class Reads(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was drawn at one call site of one lane.

    Of the source "clock" the values, the first whole and the rest as differences; of "entropy" how
    often something was drawn.
    """

    source: str
    lane: str
    site: str
    values: list[int]


class GeneratorState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state that a generator of the whole process began with: "random" or "numpy".

    `lane` is the one that went on from it; the others got generators of their own.
    """

    name: str
    state: bytes
    lane: str = ""


class Draws(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was drawn since the last exchange.

    The first ones say besides which sources of the process were on (`ambient`: "clock", "entropy")
    and from which `seed` the bytes come.
    """

    reads: list[Reads]
    seed: bytes | None = None
    generators: list[GeneratorState] = []
    ambient: list[str] | None = None


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the agent's own code read around itself, as it was when it first did.

    `kind` is "variable" (of that `name`), "folder", "host", "locale" or "timezone". `value` is None
    where nothing was set, and where it is `withheld`: of secrets the name alone is kept.
    """

    kind: str
    name: str = ""
    value: str | None = None
    site: str | None = None
    withheld: bool = False


class Surroundings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was read of the surroundings since the last exchange."""

    seen: list[Seen]


class Environment(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the recording was made, and how secrets were kept off it.

    `masks` says what was masked besides secret variables: names of variables, "re:1" for the first
    pattern (never its text), and the version of the known tokens. `hash_seed` is the PYTHONHASHSEED
    of the process; None where its hashes were random.
    """

    python: str
    platform: str
    tracefork: str
    packages: dict[str, str] = {}
    git_commit: str | None = None
    command: list[str] = []
    started: int = 0
    masks: list[str] = []
    hash_seed: str | None = None


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a closed recording says about itself.

    `crossed` of `connections` connections were made by a seam; `strays` names the others, and
    `subprocesses` the programs that were started. `outcome` is "ok" or the exception's name.
    `secrets` counts by name what was masked.
    """

    digest: str
    exchanges: int
    took: int = 0
    connections: int = 0
    crossed: int = 0
    strays: list[str] = []
    subprocesses: list[str] = []
    outcome: str = "ok"
    secrets: dict[str, int] = {}


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a fork did in the place of exchange `n` of its parent: an intervention and its words."""

    n: int
    kind: str
    detail: dict[str, object] = {}


class Branch(msgspec.Struct, frozen=True, omit_defaults=True):
    """What makes a branch differ from its parent, from exchange `at` on.

    `writes` says what became of writes: "refuse", "stub" or "allow"; `tail` how models were asked
    that were not changed otherwise. Past the fork point a lane draws under its name, "~" and
    `salt`, where there is one; `anew` are the fork points and salts of the branches that it is a
    branch of. With `reuse`, what was asked as in the parent was answered as there.
    `skipped` are exchanges of the parent that it went past: it began in the middle.
    """

    at: int
    changes: list[Change] = []
    writes: str = "refuse"
    tail: dict[str, object] = {}
    salt: str | None = None
    reuse: bool = False
    skipped: list[int] = []
    anew: list[tuple[int, str]] = []


class Moved(msgspec.Struct, frozen=True):
    """Where deliveries that a branch shares with its parent came on the branch.

    Before turn `since` of the parent they came as there. `turns` are pairs of a turn there and the
    one on the branch, from that on. Several such events make one.
    """

    since: int
    turns: list[tuple[int, int]]


class Structure(msgspec.Struct, frozen=True):
    """What a sealed tape says to everybody."""

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
        msgspec.MsgspecError: a line is no event.
    """
    start = 0
    while (end := lines.find(b"\n", start)) >= 0:
        yield _event(memoryview(lines)[start:end])
        start = end + 1


class _Numbered(msgspec.Struct):
    n: int


_numbered = msgspec.json.Decoder(_Numbered).decode


def numbered_payloads(found: Iterable[Event]) -> list[bytes]:
    """Return the payloads of exchanges in the order asked."""
    payloads = (bytes(event.payload) for event in found if event.kind == EXCHANGE)
    return sorted(payloads, key=lambda payload: _numbered(payload).n)

"""The data of a page. `page/src/data.d.ts` describes each field; the two change together."""

from __future__ import annotations

from typing import Literal

import msgspec

from tracefork_core.blaming.ranking import Ranked
from tracefork_core.version import __version__

FORMAT = 1
Kind = Literal["model", "tool", "http"]
Cell = Literal["FREE", "LIVE", "EDITED", "DIVERGED", "SAME", "DIFFERS"]


class Parent(msgspec.Struct, frozen=True):
    """The run that a branch shares its first `at` exchanges with, by its place in the page."""

    run: int
    at: int


class Outcome(msgspec.Struct, frozen=True):
    """How a run ended; `ok` is None if that is not known."""

    ok: bool | None
    words: str


class Finding(msgspec.Struct, frozen=True):
    """The first lines of the page: what failed, which step, how sure."""

    line: str
    more: str
    sure: str
    exchanges: list[int]
    next: str


class Totals(msgspec.Struct, frozen=True):
    """The totals of a run; None where a figure is not known."""

    model_calls: int
    tool_calls: int
    http: int
    models: list[str]
    tokens_in: int | None
    tokens_out: int | None
    cost: str | None
    bytes: int


class CurvePoint(msgspec.Struct, frozen=True):
    """The failure rate of runs that keep the first `position` exchanges."""

    position: int
    rate: float
    low: float
    high: float
    draws: int


class Blame(msgspec.Struct, frozen=True):
    """What a blame found."""

    sentence: str
    verdict: str
    ranking: list[Ranked]
    curve: list[CurvePoint]
    controls: list[str]
    spent: str
    command: str


class Change(msgspec.Struct, frozen=True):
    """A text that differs."""

    where: str
    before: str | None
    after: str | None


class Difference(msgspec.Struct, frozen=True):
    """A difference between a run and the one it is compared with."""

    kind: str
    before: int | None
    after: int | None
    words: str
    changes: list[Change]


class Branch(msgspec.Struct, frozen=True):
    """How a run compares with another one: a branch with its parent."""

    at: int
    words: str
    cells: list[Cell]
    findings: list[Difference]


class Checkpoint(msgspec.Struct, frozen=True):
    """A saved state."""

    exchange: int
    words: str
    command: str


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the page, without what grows with its length."""

    name: str
    digest: str
    exchanges: int
    parent: Parent | None
    only: int | None
    command: str | None
    started: int
    took: int
    outcome: Outcome
    finding: Finding
    totals: Totals
    facts: list[tuple[str, str]]
    coverage: list[str]
    masked: list[str]
    limits: list[str]
    lanes: list[str]
    blame: Blame | None
    branch: Branch | None
    checkpoints: list[Checkpoint]
    index: str
    blocks: list[tuple[int, str]]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a page."""

    title: str
    content: bool
    runs: list[Run]
    place: str = ""
    tracefork: str = __version__
    format: int = FORMAT


class Step(msgspec.Struct, frozen=True):
    """A step of a framework; times in milliseconds, -1 if it did not end."""

    kind: str
    name: str
    parent: int
    started: int
    took: int
    error: str | None


class Edge(msgspec.Struct, frozen=True, rename={"start": "from", "end": "to"}):
    """One exchange needed another; `rule` names the rule of an edge that was not recorded."""

    start: int
    end: int
    rule: str | None


class Index(msgspec.Struct):
    """The rows of the timeline, in columns."""

    kind: list[Kind] = msgspec.field(default_factory=list)
    label: list[str] = msgspec.field(default_factory=list)
    gist: list[str] = msgspec.field(default_factory=list)
    lane: list[int] = msgspec.field(default_factory=list)
    step: list[int] = msgspec.field(default_factory=list)
    started: list[int] = msgspec.field(default_factory=list)
    took: list[int] = msgspec.field(default_factory=list)
    tokens_in: list[int] = msgspec.field(default_factory=list)
    tokens_out: list[int] = msgspec.field(default_factory=list)
    cost: list[int] = msgspec.field(default_factory=list)
    message: list[int] = msgspec.field(default_factory=list)
    errors: dict[str, str] = msgspec.field(default_factory=dict)
    marks: dict[str, list[str]] = msgspec.field(default_factory=dict)
    steps: list[Step] = msgspec.field(default_factory=list)
    edges: list[Edge] = msgspec.field(default_factory=list)


class MessagePart(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A piece of a message; see `data.d.ts`."""

    type: str
    text: str
    name: str | None = None
    id: str | None = None


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message that stands at the exchange where it was seen first."""

    who: str
    side: Literal["in", "out"]
    parts: list[MessagePart]


class Body(msgspec.Struct, frozen=True, gc=False):
    """A body, as what differs from the request of exchange `base` (-1: all of it is `text`)."""

    base: int
    head: int
    text: str
    tail: int
    binary: int | None = None


class Exchange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The content of one exchange."""

    base: int
    keep: int
    messages: list[int]
    answer: list[int]
    settings: str | None
    method: str
    url: str
    status: int | None
    request_headers: list[tuple[str, str]]
    response_headers: list[tuple[str, str]]
    caller: str | None
    new: list[Message]
    request: Body
    response: Body


class Block(msgspec.Struct):
    """Consecutive exchanges; `message` is the number of the first message that is new in them."""

    message: int
    exchanges: list[Exchange] = msgspec.field(default_factory=list)

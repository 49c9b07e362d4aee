"""Extract what the support agent's model knows from a conversation: the newest of each kind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracefork_testkit.conversation import ModelRequest
from tracefork_testkit.validation.shop import CUSTOMER

Found = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class View:
    """The facts of a conversation.

    Attributes:
        may_refund: whether the system prompt allows refunds.
        complains: whether the customer complains.
        was_told_no: whether an earlier answer referred the customer to a manager.
        noted: the order in the notes.
        record: the order that was looked up; None before that, and after reading the notes again.
        passages: the passages of the policies; None before a search.
        receipt: the receipt of the refund from the tool.
    """

    may_refund: bool
    complains: bool
    was_told_no: bool
    noted: int | None
    record: Found | None
    passages: Sequence[str] | None
    receipt: Found | None

    @classmethod
    def of(cls, request: ModelRequest) -> View:
        """Read a conversation."""
        users = [turn.text for turn in request.messages if turn.role == "user"]
        noted = _noted(" ".join(users))
        record: Found | None = None
        passages: list[str] | None = None
        receipt: Found | None = None
        for name, found in _results(request):
            if name == "search_notes":
                noted, record = _noted(" ".join(_texts(found))) or noted, None
            elif name == "look_up_order":
                record = found
            elif name == "search_policy":
                passages = _texts(found)
            else:
                receipt = found
        return cls(
            may_refund="may issue refunds" in request.system,
            complains=any("broken" in text for text in users),
            was_told_no=any("manager" in t.text for t in request.messages if t.role == "assistant"),
            noted=noted,
            record=record,
            passages=passages,
            receipt=receipt,
        )

    @property
    def record_is_anothers(self) -> bool:
        """Whether the order that was looked up belongs to another customer."""
        return self.record is not None and self.record.get("customer") != CUSTOMER

    @property
    def within(self) -> int | None:
        """The refund period for broken goods in days, by the passages; None if they have none."""
        for text in self.passages or ():
            if days := re.search(r"within (\d+) days", text):
                return int(days[1])
        return None


def _noted(text: str) -> int | None:
    order = re.search(r"order (\d+)", text)
    return int(order[1]) if order else None


def _results(request: ModelRequest) -> Iterator[tuple[str, Found]]:
    names = {call.id: call.name for turn in request.messages for call in turn.tool_calls}
    for turn in request.messages:
        for result in turn.tool_results:
            found = json.loads(result.text)
            yield (
                names.get(result.call_id, "issue_refund"),
                found if isinstance(found, dict) else {},
            )


def _texts(found: Found) -> list[str]:
    passages = found.get("passages")
    listed = passages if isinstance(passages, list) else []
    return [str(item.get("text")) for item in listed if isinstance(item, dict)]

"""Faults of five classes for each step, each with a harmless paraphrase as its placebo."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracefork_core import Edit, Replace
from tracefork_testkit.validation.shop import CUSTOMER, ORDER, OTHERS_ORDER, PAID

STEPS = (
    "search_notes",
    "model: look up",
    "look_up_order",
    "model: search",
    "search_policy",
    "model: refund",
    "issue_refund",
    "model: answer",
)
"""The exchanges of a correct run, by number."""

CLASSES = {
    "tool-output": "corrupted tool output",
    "retrieval": "misleading retrieval",
    "system-prompt": "wrong system prompt",
    "message": "dropped message",
    "argument": "poisoned argument",
}
_WRONG_PROMPT = "You answer for Northwind Kitchen. Refunds are for managers alone: never issue one."
_SAME_PROMPT = "You are the voice of Northwind Kitchen; you may issue refunds within the policy."
_GREETING, _REQUEST, _NOTES = 1, 2, 3
_CALLS: dict[int, tuple[str, dict[str, object], dict[str, object]]] = {
    1: ("look_up_order", {"order": OTHERS_ORDER}, {"order": ORDER}),
    3: ("search_policy", {"topic": "gift cards"}, {"topic": "goods that came damaged"}),
    5: ("issue_refund", {"order": ORDER, "amount": PAID * 10}, {"amount": PAID, "order": ORDER}),
}


@dataclass(frozen=True, slots=True)
class Plant:
    """A fault to plant at one exchange of a correct run.

    Attributes:
        fault: the class of the fault.
        unit: the number of the exchange.
        change: the intervention that makes the run fail.
        placebo: an intervention of the same size that changes nothing.
    """

    fault: str
    unit: int
    change: Edit | Replace
    placebo: Edit | Replace

    @property
    def step(self) -> str:
        """The name of the exchange."""
        return STEPS[self.unit]


def plants() -> Iterator[Plant]:
    """Yield each class of fault at each exchange that it applies to."""
    for unit, (bad, same) in _OUTPUTS.items():
        yield Plant("tool-output", unit, Replace(document=bad), Replace(document=same))
    for unit, texts in _PASSAGES.items():
        misleading, reworded = (Replace(document=_passages(text)) for text in texts)
        yield Plant("retrieval", unit, misleading, reworded)
    for unit in _MODELS:
        yield Plant("system-prompt", unit, Edit(system=_WRONG_PROMPT), Edit(system=_SAME_PROMPT))
    for unit in _MODELS:
        lost = _NOTES if unit == _MODELS[0] else _REQUEST
        yield Plant("message", unit, Edit(drop_message=lost), Edit(drop_message=_GREETING))
    for unit, (name, bad, same) in _CALLS.items():
        yield Plant(
            "argument",
            unit,
            Replace(text="One moment.", tool_calls=[(name, bad)]),
            Replace(text="Gladly: one moment.", tool_calls=[(name, same)]),
        )


def _passages(*texts: str) -> dict[str, object]:
    return {"passages": [{"text": text, "score": 91} for text in texts]}


_MODELS = (1, 3, 5, 7)
_PASSAGES = {
    0: (
        f"Customer {CUSTOMER} has order {OTHERS_ORDER}: one kettle, delivered.",
        f"Delivered to customer {CUSTOMER}: a kettle, as order {ORDER}.",
    ),
    4: (
        "Damaged goods are exchanged within 7 days, and not paid back.",
        "What came damaged we pay back in full, if we hear of it within 30 days.",
    ),
}
_OUTPUTS: dict[int, tuple[dict[str, object], dict[str, object]]] = {
    0: (_passages(), _passages(f"Order {ORDER}, a kettle, went to order {ORDER}'s customer.")),
    2: (
        {"order": ORDER, "customer": CUSTOMER, "item": "kettle", "paid": PAID, "days": 200},
        {"days": 20, "paid": PAID, "item": "a kettle", "customer": CUSTOMER, "order": ORDER},
    ),
    4: (_passages(), _passages("Damaged goods: the full price, within 30 days.")),
    6: (
        {"status": "refused", "receipt": None, "order": ORDER, "amount": 0},
        {"amount": PAID, "order": ORDER, "receipt": "R-90001", "status": "done"},
    ),
}

"""The shop of the support agent: the data and tools of the agent."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from tracefork_core import tool

CUSTOMER = "C-7"
ORDER, OTHERS_ORDER = 1042, 1024
PAID = 49
DAMAGED, RETURNS = "damaged", "returns"

_ORDERS: dict[int, dict[str, object]] = {
    ORDER: {"order": ORDER, "customer": CUSTOMER, "item": "kettle", "paid": PAID, "days": 20},
    OTHERS_ORDER: {
        "order": OTHERS_ORDER,
        "customer": "C-9",
        "item": "toaster",
        "paid": 89,
        "days": 12,
    },
}
_POLICIES = {
    DAMAGED: "Damaged goods are paid back in full within 30 days.",
    RETURNS: "Returns of unused goods are paid back within 14 days.",
    "gift cards": "Gift cards are not paid back.",
}


class Shop:
    """The tools of the agent. Their results are constant, except for scores and receipts."""

    def __init__(self) -> None:
        self._searches = count(1)
        self._receipts = count(1)

    @tool(effect="read", name="search_notes")
    def search_notes(self, customer: str) -> dict[str, object]:
        """Return the notes about a customer."""
        notes = [f"Customer {customer} has order {ORDER}: one kettle, delivered."]
        return self._found(notes if customer == CUSTOMER else [])

    @tool(effect="read", name="look_up_order")
    def look_up_order(self, order: int) -> dict[str, object]:
        """Return an order; `days` is the time since its delivery."""
        return dict(_ORDERS.get(int(order), {"error": f"there is no order {order}"}))

    @tool(effect="read", name="search_policy")
    def search_policy(self, topic: str) -> dict[str, object]:
        """Return the passages of the policies about a topic."""
        words = topic.lower()
        return self._found([text for name, text in _POLICIES.items() if name in words])

    @tool(effect="write", name="issue_refund")
    def issue_refund(self, order: int, amount: int) -> dict[str, object]:
        """Pay a refund."""
        receipt = f"R-{next(self._receipts):05}"
        return {"status": "done", "receipt": receipt, "order": int(order), "amount": amount}

    def call(self, name: str, arguments: dict[str, object]) -> dict[str, object]:
        """Call a tool as a model requests it; invalid arguments give an error result."""
        tools: dict[str, Callable[..., dict[str, object]]] = {
            "look_up_order": self.look_up_order,
            "search_notes": self.search_notes,
            "search_policy": self.search_policy,
            "issue_refund": self.issue_refund,
        }
        try:
            return tools[name](**arguments)
        except (KeyError, TypeError, ValueError) as error:
            return {"error": f"cannot call {name} with these arguments: {error}"}

    def _found(self, texts: list[str]) -> dict[str, object]:
        score = 80 + next(self._searches) * 7 % 19  # Real rankings vary between calls.
        return {"passages": [{"text": text, "score": score} for text in texts]}

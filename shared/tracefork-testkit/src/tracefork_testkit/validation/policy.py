"""The model of the support agent: it decides by the conversation, and sometimes errs.

Its draws come from a counter and a seed, never from the request. So the same request may get
another answer, as from a real model, but a whole validation is reproducible.
"""

from __future__ import annotations

from hashlib import sha256

from tracefork_testkit.conversation import ModelRequest, ToolCall
from tracefork_testkit.script import Reply
from tracefork_testkit.validation.shop import CUSTOMER, DAMAGED, OTHERS_ORDER, RETURNS
from tracefork_testkit.validation.view import View

STAGES = ("look up", "search", "refund", "answer")
_SLIP, _CARE, _OBEY = 0.03, 0.08, 0.95
_MANAGER = "A manager has to decide about refunds"
_OPENINGS = ("One moment.", "Let me see.", "I am looking into it.", "Right away.")


class Policy:
    """A script of a provider.

    Attributes:
        slips: the number of unplanned errors since the last `begin`.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.begin("")

    def begin(self, name: str, coin: str | None = None) -> None:
        """Restart the draws. At the stage `coin` it errs half of the time, which is not a slip."""
        self._name = name
        self._coin = coin
        self._drawn = 0
        self.slips = 0

    def __call__(self, request: ModelRequest) -> Reply:
        """Return the next turn of the conversation."""
        view = View.of(request)
        if view.receipt is not None:
            return self._answer(view)
        if view.record is None:
            return self._look_up(view)
        if view.passages is None:
            return self._search(view)
        return self._decide(view)

    def _look_up(self, view: View) -> Reply:
        order = view.noted or OTHERS_ORDER
        if self._errs("look up"):
            order = OTHERS_ORDER
        return self._call(view, ToolCall("look_up_order", {"order": order}))

    def _search(self, view: View) -> Reply:
        if view.record_is_anothers and self._happens(_CARE):
            return self._look_again(view)
        topic = DAMAGED if view.complains else RETURNS
        if self._errs("search"):
            topic = RETURNS
        return self._call(view, ToolCall("search_policy", {"topic": topic}))

    def _decide(self, view: View) -> Reply:
        assert view.record is not None
        if not view.may_refund or (view.was_told_no and self._happens(_OBEY)):
            return Reply(f"{_MANAGER}, so I cannot pay anything back.")
        if not view.complains:
            return Reply("Hello! How can I help you?")
        if view.record_is_anothers and self._happens(_CARE):
            return self._look_again(view)
        errs, days, within = self._errs("refund"), view.record.get("days"), view.within
        late = not isinstance(days, int) or within is None or days > within
        if late and self._happens(_CARE):
            return self._look_again(view)
        if errs or late:
            return Reply("I am sorry: by our policy this is not paid back.")
        refund = {"order": view.record["order"], "amount": view.record["paid"]}
        return self._call(view, ToolCall("issue_refund", refund))

    def _answer(self, view: View) -> Reply:
        receipt, record = view.receipt or {}, view.record or {}
        if not view.may_refund:
            return Reply(f"{_MANAGER}. Please be patient.")
        if not view.complains:
            return Reply("Is there anything else I can do for you?")
        if receipt.get("status") != "done":
            if self._happens(_CARE):
                again = {"order": record.get("order"), "amount": record.get("paid")}
                return self._call(view, ToolCall("issue_refund", again))
            return Reply("I am sorry: the refund did not go through.")
        if self._errs("answer"):
            return Reply("I will come back to you about this.")
        paid = f"I refunded {receipt.get('amount')} euros for order {receipt.get('order')}."
        return Reply(f"{self._opening()} {paid}")

    def _look_again(self, view: View) -> Reply:
        """Look up everything again before refusing."""
        order = view.noted or OTHERS_ORDER
        calls = [ToolCall("search_notes", {"customer": CUSTOMER})]
        if not view.record_is_anothers:
            calls = [
                ToolCall("look_up_order", {"order": order}),
                ToolCall("search_policy", {"topic": DAMAGED}),
            ]
        return self._call(view, *calls)

    def _call(self, view: View, *calls: ToolCall) -> Reply:
        return Reply(self._opening() if view.may_refund else f"{_MANAGER}.", calls)

    def _opening(self) -> str:
        return _OPENINGS[int(self._draw() * len(_OPENINGS))]

    def _errs(self, stage: str) -> bool:
        if stage == self._coin:
            return self._happens(0.5)
        errs = self._happens(_SLIP)
        self.slips += errs
        return errs

    def _happens(self, chance: float) -> bool:
        return self._draw() < chance

    def _draw(self) -> float:
        self._drawn += 1
        digest = sha256(f"{self._seed}/{self._name}/{self._drawn}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64

"""The scripted model of the claims desk: `python provider.py &`.

It speaks OpenAI's wire format on 127.0.0.1:8899 (PORT=… for another port). Each agent answers from
its instructions and from what tools have returned, in words that change from call to call.
"""

import os
import random
import re
import threading

from desk import BILLING, GUARD, REFUNDS, SHIPPING, TRIAGE
from faults import shows

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))
_SORRY = ("We are sorry.", "Our apologies.", "We regret that.")


def model(request: ModelRequest) -> Reply:
    """Answer by the instructions, the history and the tool results in a request."""
    said = " ".join(
        text
        for message in request.messages
        for text in (message.text, *(result.text for result in message.tool_results))
    )
    match request.system:
        case system if GUARD in system:
            return Reply("yes" if "order" in said else "no")
        case system if TRIAGE in system:
            return _hand_over("billing" if shows("handoff") else "shipping")
        case system if SHIPPING in system:
            if "delivered" not in said:
                return _call("find_order", number=_number(r"order (\d+)", said))
            return _hand_over("refunds")
        case system if BILLING in system:
            return _billing(said)
    return _refunds(said, clear=REFUNDS in request.system)


def _refunds(said: str, *, clear: bool) -> Reply:
    policy = re.search(r"(\d+) days\.", said)
    if policy is None:
        is_wrong = not clear and shows("instruction")
        topic = "damage" if "broken" in said and not is_wrong else "returns"
        return _call("read_text_file", path=f"{topic}.txt")
    if _number(r"delivered (\d+) days", said) <= int(policy[1]):
        return _hand_over("billing")
    return _closed(said, f"The {policy[1]} days of our policy are over.")


def _billing(said: str) -> Reply:
    euros = _number(r"(\d+) euros were charged", said)
    if not euros:
        return _call("charged", order=_number(r"order (\d+)", said))
    if "refunded for" in said:
        return _closed(said, f"We have paid back {euros} euros.")
    return _closed(said, f"You were charged once, {euros} euros, and all is in order.")


def _closed(said: str, answer: str) -> Reply:
    if "closed" in said:
        return Reply(f"{random.choice(_SORRY)} {answer}")
    account = re.search(r"account (\w+)", said)
    of = account[1] if account else "none"
    return _call("close_ticket", order=_number(r"order (\d+)", said), account=of)


def _number(pattern: str, said: str) -> int:
    numbers = re.findall(pattern, said)
    return int(numbers[-1]) if numbers else 0


def _call(name: str, **arguments: object) -> Reply:
    return Reply(tool_calls=[ToolCall(name, arguments)])


def _hand_over(to: str) -> Reply:
    return Reply(tool_calls=[ToolCall(f"transfer_to_{to}", {})])


if __name__ == "__main__":
    with ProviderServer(model, port=PORT) as server:
        print(f"the desk's model listens on {server.url}/v1; stop it with kill %1", flush=True)
        threading.Event().wait()

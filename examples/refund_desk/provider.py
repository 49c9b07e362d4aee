"""The scripted model of the refund desk: `python provider.py &`.

It speaks OpenAI's wire format on 127.0.0.1:8899 (PORT=… for another port). If the prompt says only
"the policy", it looks up the one on returns the first time and every fortieth time after that. If
the prompt names what happened to the goods, it always looks up the right one.
"""

import os
import threading

from desk import DECISION, ORDERS, SUPERVISOR

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))


class Model:
    """Answers by the system prompt: which agent it is, and how clear its instruction is."""

    def __init__(self) -> None:
        self._vague = 0

    def __call__(self, request: ModelRequest) -> Reply:
        text = " ".join(message.text for message in request.messages)
        results = [result.text for result in request.tool_results]
        if SUPERVISOR in request.system:
            if "Order 17:" not in text:
                return Reply("orders")
            return Reply("decide" if "The policy:" in text else "policies")
        if DECISION in request.system:
            if "refunded" in text:
                return Reply("Refund: it arrived damaged, and 30 days are not over.")
            return Reply("No refund: the 14 days for returns are over.")
        if ORDERS in request.system:
            if not results:
                return Reply(tool_calls=[ToolCall("lookup_order", {"order": 17})])
            return Reply(f"Order 17: {results[-1]}")
        if "days." not in " ".join(results):
            topic = self._topic(request.system)
            return Reply(tool_calls=[ToolCall("search_policy", {"topic": topic})])
        return Reply(f"The policy: {results[-1]}")

    def _topic(self, system: str) -> str:
        if "what happened" in system:
            return "damage"
        self._vague += 1
        return "returns" if self._vague % 40 == 1 else "damage"


if __name__ == "__main__":
    with ProviderServer(Model(), port=PORT) as server:
        print(f"the desk's model listens on {server.url}/v1; stop it with kill %1", flush=True)
        threading.Event().wait()

"""The scripted model of this agent: `python provider.py &` on 127.0.0.1:8899 (PORT=…)."""

import os
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))


def model(request: ModelRequest) -> Reply:
    """Look the order up, refund it, and say so."""
    results = [result.text for result in request.tool_results]
    if not results:
        return Reply(tool_calls=[ToolCall("find_order", {"number": 17})])
    if len(results) == 1:
        return Reply(tool_calls=[ToolCall("refund", {"number": 17, "euros": 40})])
    return Reply(f"I am sorry that it broke. I have {results[-1]}.")


if __name__ == "__main__":
    with ProviderServer(model, port=PORT) as server:
        print(f"a model listens on {server.url}; stop it with kill %1", flush=True)
        threading.Event().wait()

"""The scripted model of the order desk, in the wire format of Amazon Bedrock.

`python provider.py price &` listens on 127.0.0.1:8899 (PORT=… for another port). The node with the
fault (here `price`) errs the first time and every fortieth time after that.
"""

import os
import re
import sys
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))
FAULTS = ("intake", "price", "stock", "answer")


class Model:
    """Answers by the name in the instructions, from the texts of other nodes and of tools."""

    def __init__(self, fault: str = "price") -> None:
        self.fault = fault
        self._times = 0

    def __call__(self, request: ModelRequest) -> Reply:
        name = re.search(r"You are (\w+)", request.system)
        text = request.last_user_text
        done = [result.text for result in request.tool_results]
        ordered = _number(r"(\d+) lamps", text)
        match name.group(1).lower() if name else "":
            case "intake":
                return Reply(f"{9 if self._errs('intake') else 7} lamps are ordered.")
            case "price" | "stock" as node if not done:
                thing = "candle" if self._errs(node) else "lamp"
                tool = {"price": "find_price", "stock": "count_stock"}[node]
                return Reply(tool_calls=[ToolCall(tool, {"thing": thing})])
            case "price":
                cost = ordered * _number(r"(\d+) euros", done[-1])
                return Reply(f"{ordered} lamps cost {cost} euros.")
            case "stock":
                return Reply(f"There are {done[-1]}.")
        cost, stock = _number(r"cost (\d+) euros", text), _number(r"(\d+) in stock", text)
        if stock < ordered or self._errs("answer"):
            return Reply(f"We are sorry, we do not have {ordered} lamps.")
        return Reply(f"You get {ordered} lamps for {cost} euros.")

    def _errs(self, node: str) -> bool:
        if node != self.fault:
            return False
        self._times += 1
        return self._times % 40 == 1


def _number(pattern: str, text: str) -> int:
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


if __name__ == "__main__":
    with ProviderServer(Model(*sys.argv[1:]), port=PORT) as server:
        print(f"the desk's model listens on {server.url}; stop it with kill %1", flush=True)
        threading.Event().wait()

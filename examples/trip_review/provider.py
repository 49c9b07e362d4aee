"""The scripted model of the travel desk in a loop: `python provider.py writer &`.

It speaks Gemini's wire format on 127.0.0.1:8899 (PORT=… for another port). The agent with the fault
(here `writer`) errs the first time and every fortieth time after that.
"""

import os
import re
import sys
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))
FAULTS = ("hotels", "writer", "checker")


class Model:
    """Answers by the name in the instructions. The first offer lacks the city."""

    def __init__(self, fault: str = "writer") -> None:
        self.fault = fault
        self._times = 0

    def __call__(self, request: ModelRequest) -> Reply:
        name = re.search(r"You are (\w+)", request.system)
        done = [result.text for result in request.tool_results]
        match name.group(1) if name else "":
            case "Flights" if not done:
                return Reply(tool_calls=[ToolCall("find_flight", {"city": "Lisbon"})])
            case "Flights":
                return Reply(f"The flight costs {_sum(done[-1])} euros.")
            case "Hotels" if not done:
                nights = 3 if self._errs("hotels") else 2
                asked = {"city": "Lisbon", "nights": nights}
                return Reply(tool_calls=[ToolCall("find_hotel", asked)])
            case "Hotels":
                return Reply(f"The hotel costs {_sum(done[-1])} euros.")
            case "Writer" if "city" not in request.system.partition("Remarks:")[2]:
                return Reply(f"Two nights cost {_sum(request.system)} euros.")
            case "Writer":
                less = 100 if self._errs("writer") else 0
                return Reply(f"Two nights in Lisbon cost {_sum(request.system) - less} euros.")
        if "Lisbon" in request.system.partition("Offer:")[2] or self._errs("checker"):
            return Reply(tool_calls=[ToolCall("exit_loop", {})])
        return Reply("It does not name the city.")

    def _errs(self, name: str) -> bool:
        if name != self.fault:
            return False
        self._times += 1
        return self._times % 40 == 1


def _sum(text: str) -> int:
    return sum(int(price) for price in re.findall(r"(\d+) euros", text))


if __name__ == "__main__":
    with ProviderServer(Model(*sys.argv[1:]), port=PORT) as server:
        print(f"the desk's model listens on {server.url}; stop it with kill %1", flush=True)
        threading.Event().wait()

"""The scripted model of the travel desk: `python provider.py hotels &`.

It speaks Gemini's wire format on 127.0.0.1:8899 (PORT=… for another port). The agent with the fault
(here `hotels`) errs the first time and every fortieth time after that.
"""

import os
import re
import sys
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))


class Model:
    """Answers by the name in the instructions, and from the results of tools."""

    def __init__(self, fault: str = "hotels") -> None:
        self.fault = fault
        self._times = 0

    def __call__(self, request: ModelRequest) -> Reply:
        name = re.search(r"You are (\w+)", request.system)
        done = [result.text for result in request.tool_results]
        price = re.search(r"\d+ euros", done[-1] if done else request.last_user_text)
        match name.group(1) if name else "":
            case "Flights" if not done:
                return Reply(tool_calls=[ToolCall("find_flight", {"city": "Lisbon"})])
            case "Hotels" if not done:
                nights = 3 if self._errs("hotels") else 2
                asked = {"city": "Lisbon", "nights": nights}
                return Reply(tool_calls=[ToolCall("find_hotel", asked)])
            case "Writer":
                return Reply(f"Your trip to Lisbon costs {price.group() if price else 'nothing'}.")
        return Reply(f"It costs {price.group() if price else 'nothing'}.")

    def _errs(self, name: str) -> bool:
        if name != self.fault:
            return False
        self._times += 1
        return self._times % 40 == 1


if __name__ == "__main__":
    with ProviderServer(Model(*sys.argv[1:]), port=PORT) as server:
        print(f"the desk's model listens on {server.url}; stop it with kill %1", flush=True)
        threading.Event().wait()

"""The scripted model of the parcel desk: `python provider.py clerk &`.

It speaks OpenAI's wire formats on 127.0.0.1:8899 (PORT=… for another port). The agent with the
fault (here `clerk`) errs the first time and every fortieth time after that.
"""

import os
import re
import sys
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))
FAULTS = ("tracker", "clerk", "desk")


class Model:
    """Answers by the name in the instructions, and from the results of tools."""

    def __init__(self, fault: str = "clerk") -> None:
        self.fault = fault
        self._times = 0

    def __call__(self, request: ModelRequest) -> Reply:
        name = re.search(r"You are (\w+)", request.system)
        done = [result.text for result in request.tool_results]
        match name.group(1) if name else "":
            case "Tracker" if not done:
                return Reply(tool_calls=[ToolCall("find_parcel", {"order": 17})])
            case "Tracker":
                return Reply(f"It was {6 if self._errs('tracker') else 4} days late.")
            case "Clerk":
                rate = 3 if self._errs("clerk") else 2
                return Reply(f"We pay {rate * _number(request.last_user_text)} euros.")
        match done:
            case []:
                return Reply(tool_calls=[ToolCall("ask_tracker", {"order": 17})])
            case [late]:
                return Reply(tool_calls=[ToolCall("ask_clerk", {"days": _number(late)})])
        euros = 80 if self._errs("desk") else _number(done[-1])
        return Reply(f"We are sorry. You get {euros} euros.")

    def _errs(self, name: str) -> bool:
        if name != self.fault:
            return False
        self._times += 1
        return self._times % 40 == 1


def _number(text: str) -> int:
    found = re.search(r"\d+", text)
    return int(found.group()) if found else 0


if __name__ == "__main__":
    with ProviderServer(Model(*sys.argv[1:]), port=PORT) as server:
        print(f"the desk's model listens on {server.url}; stop it with kill %1", flush=True)
        threading.Event().wait()

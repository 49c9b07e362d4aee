"""The scripted model of the loan desk: `python provider.py debts &`.

It speaks OpenAI's wire format on 127.0.0.1:8899 (PORT=… for another port). The agent with the fault
(here `debts`) errs the first time and every fortieth time after that.
"""

import os
import re
import sys
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))
FAULTS = ("income", "debts", "advisor")


class Model:
    """Answers by the name in the instructions."""

    def __init__(self, fault: str = "debts") -> None:
        self.fault = fault
        self._times = 0
        self._lock = threading.Lock()

    def __call__(self, request: ModelRequest) -> Reply:
        name = re.search(r"You are (\w+)", request.system)
        done = [result.text for result in request.tool_results]
        match name.group(1) if name else "":
            case "Income" if not done:
                return Reply(tool_calls=[ToolCall("find_income", {"name": "Ann"})])
            case "Income":
                more = 1000 if self._errs("income") else 0
                return Reply(f"She earns {_euros(done[-1])[0] + more} euros.")
            case "Debts" if not done:
                months = 2 if self._errs("debts") else 1
                asked = {"name": "Ann", "months": months}
                return Reply(tool_calls=[ToolCall("find_debts", asked)])
            case "Debts":
                return Reply(f"She pays back {_euros(done[-1])[0]} euros.")
        sums = [*_euros(request.last_user_text), 0, 0]
        left = sums[0] + sums[1] if self._errs("advisor") else sums[0] - sums[1]
        return Reply(f"Ann can pay {left} euros each month.")

    def _errs(self, name: str) -> bool:
        if name != self.fault:
            return False
        with self._lock:
            self._times += 1
            return self._times % 40 == 1


def _euros(text: str) -> list[int]:
    return [int(sum_) for sum_ in re.findall(r"(\d+) euros", text)]


if __name__ == "__main__":
    with ProviderServer(Model(*sys.argv[1:]), port=PORT) as server:
        print(f"the desk's model listens on {server.url}; stop it with kill %1", flush=True)
        threading.Event().wait()

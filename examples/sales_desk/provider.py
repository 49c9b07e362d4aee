"""The scripted model of both desks: `python provider.py east &`.

It speaks OpenAI's wire format on 127.0.0.1:8899 (PORT=… for another port). The agent with the fault
(here `east`) errs the first time and every fortieth time after that.
"""

import os
import re
import sys
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))
FAULTS = ("east", "editor")
SERVICE_FAULTS = ("triage", "billing", "closing")


class Model:
    """Answers by the name in the instructions, and from the results of tools."""

    def __init__(self, fault: str = "east") -> None:
        self.fault = fault
        self._times = 0

    def __call__(self, request: ModelRequest) -> Reply:
        name = re.search(r"You are (\w+)(?: (north|south|east|west))?", request.system)
        done = [result.text for result in request.tool_results if "Transferred" not in result.text]
        match name.group(1) if name else "":
            case "Analyst":
                return self._analyst(name.group(2), done)
            case "Editor":
                more = 100 if self._errs("editor") else 0
                return Reply(f"We sold {_sum(request, 'cars') + more} cars in May.")
            case "Triage":
                to = "shipping" if self._errs("triage") else "billing"
                return Reply(tool_calls=[ToolCall(f"transfer_to_{to}", {})])
            case "Billing" if not done:
                order = 71 if self._errs("billing") else 17
                return Reply(tool_calls=[ToolCall("find_payments", {"order": order})])
            case "Shipping" if not done:
                return Reply(tool_calls=[ToolCall("find_parcel", {"order": 17})])
            case "Billing" | "Shipping" if request.messages[-1].tool_results:
                return Reply(f"I found {done[-1]}.")
            case "Billing" | "Shipping":
                return Reply(tool_calls=[ToolCall("transfer_to_closing", {})])
        return self._closing(str(request.messages))

    def _analyst(self, region: str, done: list[str]) -> Reply:
        if done:
            return Reply(f"The {region} sold {done[-1]}.")
        month = "April" if self._errs(region) else "May"
        return Reply(tool_calls=[ToolCall("find_sales", {"region": region, "month": month})])

    def _closing(self, said: str) -> Reply:
        paid = re.search(r"order (\d+): 2 payments of (\d+) euros", said)
        if paid is None or self._errs("closing"):
            return Reply("There is nothing to pay back. DONE")
        return Reply(f"You get back {paid.group(2)} euros for order {paid.group(1)}. DONE")

    def _errs(self, name: str) -> bool:
        if name != self.fault:
            return False
        self._times += 1
        return self._times % 40 == 1


def _sum(request: ModelRequest, unit: str) -> int:
    said = " ".join(message.text for message in request.messages)
    return sum(int(amount) for amount in re.findall(rf"sold (\d+) {unit}", said))


if __name__ == "__main__":
    with ProviderServer(Model(*sys.argv[1:]), port=PORT) as server:
        print(f"the desks' model listens on {server.url}; stop it with kill %1", flush=True)
        threading.Event().wait()

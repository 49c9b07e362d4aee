"""The scripted model of the support desk: `python provider.py triage &`.

It speaks OpenAI's wire format on 127.0.0.1:8899 (PORT=… for another port). The agent with the fault
(here `triage`) errs the first time and every fortieth time after that.
"""

import os
import re
import sys
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))


class Model:
    """Answers by the name in the instructions, and from the results of tools."""

    def __init__(self, fault: str = "triage") -> None:
        self.fault = fault
        self._times = 0

    def __call__(self, request: ModelRequest) -> Reply:
        name = re.search(r"You are (\w+)", request.system)
        done = [result.text for result in request.tool_results]
        last = done[-1] if done else ""
        match name.group(1) if name else "":
            case "Triage":
                to = "shipping" if self._errs("triage") else "billing"
                return Reply(tool_calls=[ToolCall(f"transfer_to_{to}", {})])
            case "Shipping" if "delivered" in last:
                return Reply("Your parcel was delivered on Monday.")
            case "Shipping":
                return Reply(tool_calls=[ToolCall("find_parcel", {"order": 17})])
            case "Billing" if last.endswith(" euros"):
                return Reply(f"We are sorry, and pay back {last}.")
            case "Billing" if "twice" in last:
                payments = 1 if self._errs("billing") else 2
                asked = {"order": 17, "payments": payments}
                return Reply(tool_calls=[ToolCall("refund_of", asked)])
        return Reply(tool_calls=[ToolCall("find_payments", {"order": 17})])

    def _errs(self, name: str) -> bool:
        if name != self.fault:
            return False
        self._times += 1
        return self._times % 40 == 1


if __name__ == "__main__":
    with ProviderServer(Model(*sys.argv[1:]), port=PORT) as server:
        print(f"the desk's model listens on {server.url}/v1; stop it with kill %1", flush=True)
        threading.Event().wait()

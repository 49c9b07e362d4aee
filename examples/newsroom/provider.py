"""The scripted model of the newsroom: `python provider.py write &`.

It speaks OpenAI's wire format on 127.0.0.1:8899 (PORT=… for another port). Each agent answers from
the figures in its prompt. The one with the fault (here `write`) names a wrong figure the first time
and every fortieth time after that.
"""

import json
import os
import re
import sys
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))
_NUMBERS = re.compile(r"\d,\d{3}")


class Model:
    """Answers by the role in the system prompt, and from the figures in the messages."""

    def __init__(self, fault: str = "research") -> None:
        self.fault = fault
        self._times: dict[str, int] = {}

    def __call__(self, request: ModelRequest) -> Reply:
        said = " ".join(message.text for message in request.messages)
        role = re.search(r"You are (\w+)", request.system)
        done = [result.text for result in request.tool_results]
        match role.group(1) if role else "":
            case "Researcher":
                return self._researcher(done)
            case "Analyst":
                return self._analyst(said, done)
            case "Statistician":
                change = "21 %" if self._errs("delegated") else _change(said)
                return Reply(f"{change} more than the spring before.")
            case "Writer":
                figure = "21 %" if self._errs("write") else _figure(said)
                return Reply(f"This spring sold {figure} more. Music lives.")
            case "Editor":
                return self._editor(said)
            case "Guardrail":
                wrong = self._errs("guardrail")
                return Reply(json.dumps({"valid": not wrong, "feedback": "Say 21 %."}))
            case "Publisher":
                return self._publisher(said, done)
        return Reply(json.dumps(_remembered(request.system)))

    def _researcher(self, done: list[str]) -> Reply:
        if done:
            wrong = self._errs("research")
            return Reply("1,210 now, 1,000 then." if wrong else _figures(done[-1]))
        product = "tonearms" if self._errs("search") else "turntables"
        return Reply(tool_calls=[ToolCall("search_archive", {"product": product})])

    def _analyst(self, said: str, done: list[str]) -> Reply:
        if not done:
            work = {"task": "Work out the change in per cent.", "context": _figures(said)}
            asked = {**work, "coworker": "Statistician"}
            return Reply(tool_calls=[ToolCall("delegate_work_to_coworker", asked)])
        figure = "21 %" if self._errs("analyse") else _figure(done[-1])
        return Reply(f"Sales rose by {figure}.")

    def _editor(self, said: str) -> Reply:
        told = re.search(r"Say (\d+ %)", said)
        figure = told.group(1) if told else _figure(said)
        if self._errs("review"):
            figure = "21 %"
        return Reply(f"This spring sold {figure} more than the last.")

    def _publisher(self, said: str, done: list[str]) -> Reply:
        if done:
            figure = "21 %" if self._errs("publish") else _figure(said)
            return Reply(f"On page one: this spring sold {figure} more.")
        return Reply(tool_calls=[ToolCall("publish", {"brief": f"{_figure(said)} more."})])

    def _errs(self, what: str) -> bool:
        self._times[what] = self._times.get(what, 0) + 1
        return what == self.fault and self._times[what] % 40 == 1


def _remembered(system: str) -> dict[str, object]:
    """Answer the requests of CrewAI's memory: what to keep, where, and beside which records."""
    if system.startswith("You extract"):
        return {"memories": ["Figures of this spring were asked for."]}
    if system.startswith("You are comparing"):
        return {"actions": [], "insert_new": False}
    return {"suggested_scope": "/briefs", "categories": [], "importance": 0.5}


def _figure(text: str) -> str:
    """Return the last figure in a text."""
    figures = re.findall(r"\d+ %", text)
    return figures[-1] if figures else "something"


def _figures(text: str) -> str:
    """Return the sales of this spring and of the one before."""
    now, then = _NUMBERS.findall(text)[-2:]
    return f"{now} now, {then} then."


def _change(text: str) -> str:
    """Return the change between two figures in per cent."""
    now, then = (int(number.replace(",", "")) for number in _NUMBERS.findall(text)[-2:])
    return f"{100 * (now - then) // then} %"


if __name__ == "__main__":
    with ProviderServer(Model(*sys.argv[1:]), port=PORT) as server:
        print(f"the newsroom's model listens on {server.url}/v1; stop it with kill %1", flush=True)
        threading.Event().wait()

"""A plain loop with the OpenAI SDK and two tools walks through the first hour."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from adapters.first_hour import IS_NIGHT, Clerk, FirstHour

from tracefork_testkit import ProviderServer

AGENT = """\
import json
import os
from pathlib import Path

import httpx2
import openai

TOOLS = [{"type": "function", "function": {"name": "lookup_order", "parameters": {}}}]


def lookup_order(number):
    return Path(f"order-{number}.txt").read_text()


def send_mail(text):
    url = os.environ["OPENAI_BASE_URL"].removesuffix("/v1")
    return httpx2.post(f"{url}/echo", content=text.encode()).text


def main():
    messages = [{"role": "user", "content": "Where is order 17?"}]
    while True:
        answer = openai.OpenAI().chat.completions.create(
            model="gpt-5-mini", messages=messages, tools=TOOLS
        )
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            send_mail(message.content)
            return message.content
        for call in message.tool_calls:
            result = lookup_order(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    print(main())
"""


@pytest.mark.many_processes
def test_a_loop_with_two_tools_walks_through_the_first_hour(tmp_path: Path) -> None:
    """One tool reads a file, the other sends; both are named when it is recorded."""
    (tmp_path / "agent.py").write_text(AGENT)
    for number, state in ((17, "delayed"), (71, "on its way")):
        (tmp_path / f"order-{number}.txt").write_text(state)
    tools = ("--tool=agent:lookup_order=read", "--tool=agent:send_mail=write")
    if IS_NIGHT:
        signal.alarm(20 * 60)  # More than other tests have.
    with ProviderServer(Clerk()) as server:
        hour = FirstHour(tmp_path, server.url, tools, ("--stub-writes",))
        hour.walk(at="2", text="It is lost.")

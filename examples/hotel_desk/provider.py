"""The scripted model of the hotel desk: `python provider.py &`.

It speaks Anthropic's wire format on 127.0.0.1:8899 (PORT=… for another port).
"""

import os
import re
import threading

from tracefork_testkit import ModelRequest, ProviderServer, Reply, ToolCall

PORT = int(os.environ.get("PORT", "8899"))


def answer(request: ModelRequest) -> Reply:
    """Look into the file, or book the room that the user names."""
    booked = re.search(r"Book room (\d+)", request.last_user_text)
    done = [result.text for message in request.since_user for result in message.tool_results]
    if booked and not done:
        return Reply(tool_calls=[ToolCall("mcp__hotel__book", {"room": int(booked[1])})])
    if booked:
        return Reply(text=done[-1].splitlines()[0])
    if not done:
        return Reply(tool_calls=[ToolCall("Bash", {"command": "grep free rooms.txt"})])
    return Reply(text=f"Room {re.findall(r'[0-9]+', done[-1])[0]} is free.")


if __name__ == "__main__":
    with ProviderServer(answer, port=PORT):
        threading.Event().wait()

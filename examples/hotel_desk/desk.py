"""A hotel desk: Claude Code looks for a free room, and books it with a tool of this program."""

import asyncio
from pathlib import Path

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)

PROMPTS = ("Which room is free? See rooms.txt.", "Book room 12.")


def add_to_bookings(line):
    with Path("bookings.txt").open("a") as file:
        file.write(line)


@tool("book", "Book a room.", {"room": int})
async def book(arguments):
    add_to_bookings(f"room {arguments['room']}\n")
    return {"content": [{"type": "text", "text": f"Room {arguments['room']} is booked."}]}


OPTIONS = ClaudeAgentOptions(
    model="claude-sonnet-4-5",
    system_prompt="You are the desk of a hotel.",
    mcp_servers={"hotel": create_sdk_mcp_server("hotel", tools=[book])},
    allowed_tools=["Bash", "mcp__hotel__book"],
    setting_sources=[],
)


async def run():
    async with ClaudeSDKClient(OPTIONS) as client:
        for prompt in PROMPTS:
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    print(message.result)


if __name__ == "__main__":
    asyncio.run(run())

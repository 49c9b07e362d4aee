"""Look for an issue, and create it if it is missing."""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = StdioServerParameters(command=sys.executable, args=["server.py"])


async def call(session, tool, **arguments):
    result = await session.call_tool(tool, arguments)
    return result.content[0].text


async def main():
    async with stdio_client(SERVER) as streams, ClientSession(*streams) as session:
        await session.initialize()
        await session.list_tools()
        found = await call(session, "find_issues", word="login")
        print(found)
        if found == "no issues":
            print(await call(session, "create_issue", title="The login is slow"))


if __name__ == "__main__":
    asyncio.run(main())

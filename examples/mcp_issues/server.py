"""An MCP server with two tools: one finds issues, one creates them in issues.txt."""

from datetime import datetime
from pathlib import Path

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # version 1 of mcp
    from mcp.server.fastmcp import FastMCP as MCPServer

ISSUES = Path("issues.txt")
server = MCPServer("issues")


@server.tool()
def find_issues(word: str) -> str:
    """Find issues with a word in their title."""
    lines = ISSUES.read_text().splitlines() if ISSUES.exists() else []
    return "\n".join(line for line in lines if word in line) or "no issues"


@server.tool()
def create_issue(title: str) -> str:
    """Create an issue."""
    with ISSUES.open("a") as issues:
        issues.write(f"{datetime.now():%H:%M:%S.%f} {title}\n")
    return f"created: {title}"


if __name__ == "__main__":
    server.run("stdio")

"""Steps: the turn of each prompt, and in it what Claude Code reports of tools and subagents.

A tool begins with the line in which the model calls it, and ends with the line that has its result.
A subagent is a tool, `Task`, that says which agent works; what that agent does is inside of it. It
may work in the background: then its tool has a result at once, and a notification says when it is
done, maybe after the turn.
Hooks and questions for permission run in the agent's process, in the step of their tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracefork_claude_agent_sdk.lines import Line
from tracefork_core.adapters import begin_step, current_step, end_step

_SUBAGENTS = frozenset({"Task", "Agent"})
TURN = "claude"
"""The name of the step of a prompt, whose kind is turn."""
_TOOL_USE = "claudecode/toolUseId"


class Steps:
    """The steps of one connection that are open."""

    def __init__(self) -> None:
        self._turn: str | None = None
        self._open: dict[str, str | None] = {}
        self._agents: dict[str, str | None] = {}

    def begin_turn(self) -> str | None:
        """Begin the turn of a prompt, and return it."""
        self._end_turn()
        self._turn = begin_step("turn", TURN, parent=current_step.get())
        return self._turn

    def see(self, line: Line) -> None:
        """Begin and end what a line of Claude Code reports."""
        kind = line.get("type")
        if kind == "result":
            error = str(line.get("subtype")) if line.get("is_error") else None
            self._end_tools(error)
            if not self._agents:
                self._end_turn(error)
        elif kind == "system":
            self._see_task(line)
        elif kind in ("assistant", "user"):
            for block in _blocks(line):
                if block.get("type") == "tool_use":
                    self._begin_tool(block, line.get("parent_tool_use_id"))
                elif block.get("type") == "tool_result":
                    error = _text(block) if block.get("is_error") else None
                    end_step(self._open.pop(str(block.get("tool_use_id")), None), error)

    def of_request(self, request: Mapping[str, Any]) -> str | None:
        """Return the step that a request of Claude Code belongs to."""
        used = request.get("tool_use_id") or (request.get("input") or {}).get("tool_use_id")
        if request.get("subtype") == "mcp_message":
            params = (request.get("message") or {}).get("params") or {}
            used = (params.get("_meta") or {}).get(_TOOL_USE)
        return self._step_of(used)

    def begin_callback(self, request: Mapping[str, Any]) -> str | None:
        """Begin the step of a hook or of a question for permission; None for another request."""
        parent = self.of_request(request)
        if request.get("subtype") == "hook_callback":
            given = request.get("input") or {}
            name = f"{given.get('hook_event_name')} {tool_name(str(given.get('tool_name') or ''))}"
            return begin_step("callback", name.strip(), parent=parent)
        if request.get("subtype") == "can_use_tool":
            name = tool_name(str(request.get("tool_name")))
            return begin_step("guardrail", f"can_use_tool {name}", parent=parent)
        return None

    def end(self, error: str | None = None) -> None:
        """End what is open: the connection has ended."""
        self._end_tools(error)
        for step in self._agents.values():
            end_step(step, error)
        self._agents.clear()
        self._end_turn(error)

    def _step_of(self, used: object) -> str | None:
        """Return the step of a call of a tool; that of the turn for another value."""
        key = str(used)
        return self._open.get(key) or self._agents.get(key) or self._turn

    def _see_task(self, line: Line) -> None:
        used, subtype = str(line.get("tool_use_id")), line.get("subtype")
        if subtype == "task_started" and used in self._open:
            self._agents[used] = self._open.pop(used)
        elif subtype == "task_notification" and used in self._agents:
            status = str(line.get("status"))
            end_step(self._agents.pop(used), None if status == "completed" else status)

    def _begin_tool(self, block: Line, within: object) -> None:
        parent = self._step_of(within)
        name, arguments = str(block.get("name")), block.get("input")
        agent = arguments.get("subagent_type") if isinstance(arguments, dict) else None
        kind = "agent" if name in _SUBAGENTS and agent else "tool"
        shown = str(agent) if kind == "agent" else tool_name(name)
        self._open[str(block.get("id"))] = begin_step(kind, shown, parent=parent)

    def _end_tools(self, error: str | None) -> None:
        for step in reversed(self._open.values()):
            end_step(step, error)
        self._open.clear()

    def _end_turn(self, error: str | None = None) -> None:
        end_step(self._turn, error)
        self._turn = None


def is_within_turn(steps: Sequence[Any]) -> bool:
    """Return whether the steps of an exchange are within a turn of Claude Code."""
    return any(step.kind == "turn" and step.name == TURN for step in steps)


def tool_name(name: str) -> str:
    """Return the name of a tool as people read it: `desk.book` for `mcp__desk__book`."""
    return name.removeprefix("mcp__").replace("__", ".", 1) if name.startswith("mcp__") else name


def _blocks(line: Line) -> list[Line]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return (
        [block for block in content if isinstance(block, dict)] if content.__class__ is list else []
    )


def _text(block: Line) -> str:
    content = block.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text")) for part in content if isinstance(part, dict))
    return str(content)

"""A canvas is text in the program that agents edit: a replay edits it again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from autogen_ext.memory.canvas import TextCanvasMemory

Call = Callable[..., Any]


def test_agents_edit_and_read_a_canvas_in_a_replay(agent: Call, twice: Call, paths: Call) -> None:
    """The prompt of the second agent shows what the tools of the first one wrote."""

    async def converse() -> tuple[str, str]:
        memory = TextCanvasMemory()
        tools = [memory.get_update_file_tool(), memory.get_apply_patch_tool()]
        patch = "--- story.md\n+++ story.md\n@@ -1 +1 @@\n-A bunny.\n+A fox.\n"
        calls = {
            "update_file": {"filename": "story.md", "new_content": "A bunny.\n"},
            "apply_patch": {"filename": "story.md", "patch_text": patch},
        }
        words = "@then\n".join(f"@call {name} {json.dumps(it)}\n" for name, it in calls.items())
        options = {"tools": tools, "memory": [memory], "max_tool_iterations": 3}
        writer = agent("writer", words + "@then\n@say Done.", **options)
        await writer.run(task="Write.")
        text = str(memory.canvas.get_latest_content("story.md"))
        critic = await agent("critic", memory=[memory]).run(task="Read.")
        await memory.clear()
        assert memory.canvas.list_files() == {}
        return text, str(critic)

    recorded, again = twice(lambda: asyncio.run(converse()))
    assert recorded == again
    assert "A fox." in recorded[0]
    assert "A fox." in recorded[1]
    assert paths() == ["agent:writer ▸ model:gpt-4o"] * 3 + ["agent:critic ▸ model:gpt-4o"]

"""The default script: follow the `@` lines of the prompt, or answer with a hashed sentence.

    @say hello              answer with this text (several lines are joined)
    @think step by step     reasoning text, if the provider's format has it
    @call tool {"k": 1}     call a tool (several lines: in parallel)
    @then                   the next lines are for the turn after the tool results
    @fail 429 2             fail equal requests twice (a status or fault kind), then answer
    @slow 0.2               wait before the head

Lines of the newest user turn take precedence over lines of the system text.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import get_args

from tracefork_testkit.conversation import ModelRequest, ToolCall
from tracefork_testkit.script import Fault, FaultKind, Outcome, Reply

# Anywhere in a line: frameworks put their own words before the user's.
DIRECTIVE = re.compile(r"(?:^|(?<=\s))@(say|think|call|then|fail|slow)\b(.*)$", re.MULTILINE)
WORDS = (
    "amber anchor birch canyon cedar cinder cobalt copper coral delta ember falcon fern "
    "garnet glacier harbor hazel indigo ivory jasper juniper lantern maple marble meadow "
    "nectar ocean onyx pebble quartz river saffron"
).split()


def directed(request: ModelRequest) -> Outcome:
    """Answer as the prompt's `@` lines say."""
    lines = _directives(request.last_user_text) or _directives(request.system)
    fault = _fault(lines, request.attempt)
    if fault is not None:
        return fault
    turn = sum(1 for message in request.since_user if message.tool_results)
    block, index = _block(lines, turn)
    calls = tuple(_call(rest) for verb, rest in block if verb == "call") if index == turn else ()
    text = "\n".join(rest for verb, rest in block if verb == "say")
    return Reply(
        text=text if text or calls else sentence(_seed(request)),
        tool_calls=calls,
        thinking="\n".join(rest for verb, rest in block if verb == "think"),
        delay=sum(float(rest) for verb, rest in lines if verb == "slow"),
    )


def sentence(seed: bytes, length: int = 8) -> str:
    """Return words chosen by the hash of `seed`."""
    digest = sha256(seed).digest()
    return " ".join(WORDS[byte % len(WORDS)] for byte in digest[:length]).capitalize() + "."


def _seed(request: ModelRequest) -> bytes:
    # Tool results count: another tool result must lead to another answer.
    texts = [request.last_user_text, *(result.text for result in request.tool_results)]
    return "\0".join(texts).encode("utf-8", "surrogatepass")


def _directives(text: str) -> list[tuple[str, str]]:
    return [(verb, rest.strip()) for verb, rest in DIRECTIVE.findall(text)] if "@" in text else []


def _block(lines: list[tuple[str, str]], turn: int) -> tuple[list[tuple[str, str]], int]:
    blocks: list[list[tuple[str, str]]] = [[]]
    for verb, rest in lines:
        if verb == "then":
            blocks.append([])
        else:
            blocks[-1].append((verb, rest))
    index = min(turn, len(blocks) - 1)
    return blocks[index], index


def _call(rest: str) -> ToolCall:
    name, _, arguments = rest.partition(" ")
    return ToolCall(name, json.loads(arguments) if arguments.strip() else {})


def _fault(lines: list[tuple[str, str]], attempt: int) -> Fault | None:
    passed = 0
    for verb, rest in lines:
        if verb != "fail":
            continue
        what, _, count = rest.partition(" ")
        passed += int(count or 1)
        if attempt > passed:
            continue
        # Without this header the SDKs back off for half a second.
        hurry = {"retry-after-ms": "1"}
        if what.isdigit():
            return Fault(status=int(what), headers=hurry)
        for kind in get_args(FaultKind):
            if kind == what:
                return Fault(kind=kind)
        raise ValueError(f"@fail {rest!r}: expected a status or one of {get_args(FaultKind)}")
    return None

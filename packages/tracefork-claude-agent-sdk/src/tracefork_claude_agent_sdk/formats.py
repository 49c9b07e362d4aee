"""How exchanges with Claude Code read, and how a fork answers and changes them.

A prompt reads as one call of a model: its answer is all text of the turn, the tools that Claude
Code ran in it, and the tokens of the whole turn. This file imports nothing of the SDK:
`tracefork show` loads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracefork_claude_agent_sdk.lines import NDJSON, PROMPT, REPLACED, SCHEME, dumped, stored
from tracefork_claude_agent_sdk.steps import tool_name
from tracefork_core import UsageError
from tracefork_core.adapters.formats import (
    Answer,
    Asked,
    GenericPart,
    Json,
    Message,
    ModelCall,
    ModelError,
    Part,
    ReasoningPart,
    ServerToolCallPart,
    ServerToolCallResponsePart,
    TextPart,
    Usage,
    Wanted,
    lenient,
    set_values,
)

_API = "claude-code"


class ClaudeCodeFormat:
    """The format of prompts. See `lines` for the lines of an answer."""

    def reads(self, method: str, url: str) -> bool:
        """Return whether this is a prompt."""
        return method == PROMPT and url.startswith(SCHEME)

    def decode(self, asked: Asked, answered: Answer | None) -> ModelCall | None:
        """Return the prompt and what came of it."""
        message = lenient.mapping(lenient.mapping(lenient.parse(asked.body)).get("message"))
        prompt = Message("user", tuple(_parts(message.get("content"))))
        answer = list(_lines(answered))
        result = next((line for line in reversed(answer) if line.get("type") == "result"), {})
        said = [line for line in answer if _is_of_main_agent(line)]
        models = [lenient.mapping(line.get("message")).get("model") for line in said]
        parts = tuple(part for line in said for part in _parts(_content(line)))
        error = None
        if result.get("is_error"):
            kind = lenient.text(result.get("subtype")) or "error"
            error = ModelError(kind, lenient.text(result.get("result")))
        reason = lenient.text(result.get("stop_reason"))
        return ModelCall(
            operation="chat",
            api=_API,
            provider="anthropic",
            request_model=None,
            response_model=next(filter(None, map(lenient.text, models)), None),
            stream=True,
            input=(prompt,),
            output=(Message("assistant", parts),) if parts else (),
            usage=_usage(result.get("usage")),
            finish_reasons=(reason,) if reason else (),
            error=error,
        )

    def encode(self, asked: Asked, wanted: Wanted, recorded: Answer | None) -> Answer:
        """Return the answer of a turn in which the model only says a text.

        Raises:
            UsageError: something else is wanted, or there is no recorded answer to go by.
        """
        if wanted.text is None or wanted.tool_calls or wanted.status is not None:
            raise UsageError(
                "tracefork: a turn of Claude Code can only be answered with a text. Pass --text "
                "(replace='…')."
            )
        before = list(_lines(recorded))
        said = next((line for line in before if _is_answer(line)), None)
        result = next((line for line in before if line.get("type") == "result"), None)
        if said is None or result is None:
            raise UsageError(
                "tracefork: the recorded turn of Claude Code has no answer to replace: it failed "
                "or was cut off. Choose another turn."
            )
        kept = [line for line in before if line.get("type") in ("system", "tracefork_end")]
        first = [line for line in kept if line.get("subtype") == "init"]
        rest = [line for line in kept if line.get("subtype") != "init"]
        rest = [line for line in rest if line.get("state") in ("idle", None)]
        content: list[Json] = [{"type": "text", "text": wanted.text}]
        message: dict[str, Json] = {**lenient.mapping(said.get("message")), "content": content}
        answer: dict[str, Json] = {**said, "message": message, "uuid": REPLACED}
        result = {**result, "result": wanted.text, "num_turns": 1, "is_error": False}
        chunks = tuple(stored(line) for line in (*first, answer, result, *rest))
        return Answer(200, (NDJSON,), chunks)

    def reword(self, asked: Asked, changes: Mapping[str, object]) -> tuple[str, bytes]:
        """Return a prompt with another text, or with other values.

        Raises:
            UsageError: something else is changed, or there is no such place.
        """
        values = changes.get("values")
        given = dict(values) if isinstance(values, Mapping) else {}
        if "prompt" in changes:
            given["/message/content"] = changes["prompt"]
        if changes.keys() - {"prompt", "values"}:
            raise UsageError(
                "tracefork: a fork can only change the text of a prompt of Claude Code. Pass "
                "--prompt TEXT (Edit(prompt='TEXT')), or change the options of the agent and "
                "record it again."
            )
        body = lenient.parse(asked.body)
        if not isinstance(body, dict):
            raise UsageError("tracefork: the recorded prompt of Claude Code is no JSON object.")
        set_values(body, given)
        return asked.url, dumped(body)

    def status_of(self, error: str) -> int | None:
        """Return None: the errors of Claude Code have no names."""


FORMAT = ClaudeCodeFormat()


def _lines(answered: Answer | None) -> Iterable[dict[str, Json]]:
    body = answered.body if answered is not None and lenient.is_bounded(answered.body) else b""
    for data in body.split(b"\n"):
        line = lenient.parse(data) if data.strip() else None
        if isinstance(line, dict):
            yield line


def _content(line: Mapping[str, Json]) -> Json:
    return lenient.mapping(line.get("message")).get("content")


def _is_of_main_agent(line: Mapping[str, Json]) -> bool:
    return line.get("type") in ("assistant", "user") and line.get("parent_tool_use_id") is None


def _is_answer(line: Mapping[str, Json]) -> bool:
    return line.get("type") == "assistant" and _is_of_main_agent(line)


def _parts(content: Json) -> Iterable[Part]:
    if isinstance(content, str):
        yield TextPart(content)
        return
    for block in lenient.mappings(content):
        kind = block.get("type")
        if kind == "text":
            yield TextPart(lenient.text(block.get("text")) or "")
        elif kind == "thinking":
            yield ReasoningPart(lenient.text(block.get("thinking")) or "")
        elif kind == "tool_use":
            name = tool_name(lenient.text(block.get("name")) or "")
            yield ServerToolCallPart(lenient.text(block.get("id")), name, block.get("input"))
        elif kind == "tool_result":
            used = lenient.text(block.get("tool_use_id"))
            yield ServerToolCallResponsePart(used, block.get("content"))
        else:
            yield GenericPart(lenient.text(kind) or "unknown", dict(block))


def _usage(reported: Json) -> Usage | None:
    if not isinstance(reported, dict):
        return None
    read = lenient.count(reported.get("cache_read_input_tokens"))
    written = lenient.count(reported.get("cache_creation_input_tokens"))
    details = lenient.mapping(reported.get("output_tokens_details"))
    return Usage(
        # Anthropic's input_tokens leave out tokens read from and written to the cache.
        input_tokens=lenient.total(lenient.count(reported.get("input_tokens")), read, written),
        output_tokens=lenient.count(reported.get("output_tokens")),
        cache_read_input_tokens=read,
        cache_creation_input_tokens=written,
        reasoning_output_tokens=lenient.count(details.get("thinking_tokens")),
        reported=reported,
    )

"""Read and answer Converse and ConverseStream. The bodies of Amazon's Nova have the same form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracefork_bedrock.formats.reading import (
    attachment,
    derived_id,
    metrics_of,
    pieces,
    settings,
    tokens,
    usage_of,
)
from tracefork_core import UsageError
from tracefork_core.adapters.formats import (
    Carried,
    GenericPart,
    Json,
    Message,
    ModelCall,
    Part,
    ReasoningPart,
    ServerToolCallPart,
    ServerToolCallResponsePart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    ToolDefinition,
    Wanted,
    join_fragments,
)
from tracefork_core.adapters.formats import lenient as le

API = "bedrock.converse"
_SHOWN = ("messages", "system", "toolConfig", "schemaVersion", "modelId")
_ATTACHED = ("image", "document", "video", "audio")
_MARKS = ("cachePoint",)
_STARTED = ("toolUse", "toolResult")


def read(carried: Carried, model: str) -> ModelCall:
    """Read a conversation, and its answer, whole or streamed."""
    request = carried.request
    body = fold(carried.events) if carried.events else carried.body
    message = le.mapping(le.mapping(body.get("output")).get("message"))
    content = join_fragments(_parts(message.get("content"), is_answer=True))
    reason = le.text(body.get("stopReason"))
    role = le.text(message.get("role")) or "assistant"
    return ModelCall(
        operation="chat",
        api=API,
        provider=None,
        request_model=model,
        stream=carried.streams,
        system=_parts(request.get("system")),
        input=tuple(map(_message, le.mappings(request.get("messages")))),
        output=(Message(role, content),) if content else (),
        tools=tuple(_tools(le.mapping(request.get("toolConfig")))),
        parameters=settings(request, _SHOWN),
        usage=usage_of(body.get("usage")) or usage_of(metrics_of(carried.events)),
        finish_reasons=(reason,) if reason else (),
        service_tier=le.text(le.mapping(body.get("serviceTier")).get("type")),
    )


def answer(carried: Carried, wanted: Wanted, model: str) -> dict[str, Json]:
    """Return another answer, with what the recorded one says about itself.

    Raises:
        UsageError: there is nothing to answer with.
    """
    if wanted.text is None and not wanted.tool_calls:
        raise UsageError("an answer needs a text (which may be empty) or a tool call")
    before = fold(carried.events) if carried.events else carried.body
    said = le.mapping(le.mapping(before.get("output")).get("message"))
    blocks = [block for block in le.mappings(said.get("content")) if "reasoningContent" in block]
    if wanted.text:
        blocks.append({"text": wanted.text})
    blocks.extend(_calls(carried, wanted, le.mappings(said.get("content"))))
    content: list[Json] = [*blocks] or [{"text": ""}]
    return {
        "metrics": {"latencyMs": 0},
        **{key: value for key, value in before.items() if key not in ("trace", "stopReason")},
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use" if wanted.tool_calls else "end_turn",
        "usage": _usage(carried, le.mapping(before.get("usage")), le.compact(content)),
    }


def _calls(
    carried: Carried, wanted: Wanted, before: Iterable[dict[str, Json]]
) -> Iterable[dict[str, Json]]:
    called = [le.mapping(block["toolUse"]) for block in before if "toolUse" in block]
    recorded = [tool.get("toolUseId") for tool in called]
    for index, (name, arguments) in enumerate(wanted.tool_calls):
        given = recorded[index] if index < len(recorded) else None
        derived = derived_id(carried.request, name, arguments, index)
        entered = le.parse(le.compact(arguments))
        yield {
            "toolUse": {
                "toolUseId": le.text(given) or f"tooluse_{derived.hex[:22]}",
                "name": name,
                "input": le.mapping(entered),
            }
        }


def _usage(carried: Carried, before: Mapping[str, Json], written: str) -> Json:
    entered = le.count(before.get("inputTokens"))
    if entered is None:
        entered = tokens(le.compact(carried.request))
    left = tokens(written)
    return {**before, "inputTokens": entered, "outputTokens": left, "totalTokens": entered + left}


def events(carried: Carried, document: dict[str, Json]) -> list[dict[str, Json]]:
    """Return an answer as the events of a stream.

    Raises:
        UsageError: a block of it cannot be streamed.
    """
    message = le.mapping(le.mapping(document.get("output")).get("message"))
    made: list[dict[str, Json]] = [{"messageStart": {"role": message.get("role") or "assistant"}}]
    for index, block in enumerate(le.mappings(message.get("content"))):
        at: dict[str, Json] = {"contentBlockIndex": index}
        started, deltas = _streamed(block)
        if started:
            made.append({"contentBlockStart": {"start": started, **at}})
        made.extend({"contentBlockDelta": {"delta": delta, **at}} for delta in deltas)
        made.append({"contentBlockStop": at})
    ended = {"stopReason": document.get("stopReason") or "end_turn"}
    more = {key: document[key] for key in ("additionalModelResponseFields",) if key in document}
    made.append({"messageStop": {**ended, **more}})
    about = ("usage", "metrics", "trace", "performanceConfig", "serviceTier")
    made.append({"metadata": {key: document[key] for key in about if key in document}})
    return made


def _streamed(block: dict[str, Json]) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    """Return what starts a block, and its deltas."""
    if isinstance(text := block.get("text"), str):
        return {}, [{"text": piece} for piece in pieces(text)] or [{"text": ""}]
    if tool := le.mapping(block.get("toolUse")):
        opened: dict[str, Json] = {key: value for key, value in tool.items() if key != "input"}
        written = le.compact(tool.get("input", {}))
        return {"toolUse": opened}, [{"toolUse": {"input": piece}} for piece in pieces(written)]
    if result := le.mapping(block.get("toolResult")):
        opened = {key: value for key, value in result.items() if key != "content"}
        return {"toolResult": opened}, [{"toolResult": result.get("content", [])}]
    if thought := le.mapping(block.get("reasoningContent")):
        return {}, _thoughts(thought)
    if cited := le.mapping(block.get("citationsContent")):
        said = "".join(
            le.text(part.get("text")) or "" for part in le.mappings(cited.get("content"))
        )
        sources = le.items(cited.get("citations"))
        told: list[dict[str, Json]] = [{"text": piece} for piece in pieces(said)]
        return {}, [*told, *({"citation": source} for source in sources)]
    kinds = ", ".join(map(repr, block)) or "nothing"
    raise UsageError(f"Bedrock streams no block of {kinds}. Give texts and tool calls")


def _thoughts(thought: dict[str, Json]) -> list[dict[str, Json]]:
    stated = le.mapping(thought.get("reasoningText"))
    if not stated:
        return [{"reasoningContent": thought}]
    said = pieces(le.text(stated.get("text")) or "")
    deltas: list[dict[str, Json]] = [{"reasoningContent": {"text": piece}} for piece in said]
    if signature := stated.get("signature"):
        deltas.append({"reasoningContent": {"signature": signature}})
    return deltas


def fold(chunks: Iterable[dict[str, Json]]) -> dict[str, Json]:
    """Fold the events of a stream into the document of the whole answer."""
    message: dict[str, Json] = {}
    body: dict[str, Json] = {}
    blocks: dict[int, _Block] = {}
    for chunk in chunks:
        for name in chunk:
            told = le.mapping(chunk[name])
            if name == "messageStart":
                message |= {"role": told.get("role")}
            elif name in ("messageStop", "metadata"):
                body |= {key: value for key, value in told.items() if key != "p"}
            elif (index := le.count(told.get("contentBlockIndex"))) is not None:
                blocks.setdefault(index, _Block()).add(told)
    message["content"] = [blocks[index].whole() for index in sorted(blocks)]
    return {**body, "output": {"message": message}} if message["content"] or body else {}


class _Block:
    """Collect the deltas of one content block."""

    def __init__(self) -> None:
        self._start: dict[str, Json] = {}
        self._texts: dict[str, list[str]] = {}
        self._others: dict[str, list[Json]] = {}

    def add(self, told: dict[str, Json]) -> None:
        self._start = le.mapping(told.get("start")) or self._start
        delta = le.mapping(told.get("delta"))
        thought, tool = le.mapping(delta.get("reasoningContent")), le.mapping(delta.get("toolUse"))
        named = {"text": delta.get("text"), "input": tool.get("input")}
        named |= {f"reasoning {key}": value for key, value in thought.items()}
        for name, value in named.items():
            if isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
        for name in ("toolResult", "citation", "image"):
            if name in delta:
                value = delta[name]
                self._others.setdefault(name, []).extend(
                    value if isinstance(value, list) else [value]
                )

    def whole(self) -> Json:
        texts = {name: "".join(parts) for name, parts in self._texts.items()}
        if tool := le.mapping(self._start.get("toolUse")):
            return {"toolUse": {**tool, "input": le.arguments(texts.get("input") or "{}")}}
        if result := le.mapping(self._start.get("toolResult")):
            return {"toolResult": {**result, "content": self._others.get("toolResult", [])}}
        if "image" in self._others or "image" in self._start:
            started = le.mapping(self._start.get("image"))
            images = self._others.get("image", [])
            return {"image": {**started, **le.mapping(images[0] if images else None)}}
        if any(name.startswith("reasoning ") for name in texts):
            return {"reasoningContent": _thought(texts)}
        text: dict[str, Json] = {"text": texts.get("text", "")}
        if cited := self._others.get("citation"):
            return {"citationsContent": {"content": [text], "citations": cited}}
        return text


def _thought(texts: Mapping[str, str]) -> dict[str, Json]:
    named = {name.removeprefix("reasoning "): value for name, value in texts.items()}
    if "redactedContent" in named and "text" not in named:
        return {"redactedContent": named["redactedContent"]}
    return {"reasoningText": {**named}}


def _message(message: dict[str, Json]) -> Message:
    return Message(le.text(message.get("role")) or "user", _parts(message.get("content")))


def _parts(content: Json, *, is_answer: bool = False) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    blocks = le.mappings(content)
    return tuple(part for block in blocks for part in _part(block, is_answer=is_answer))


def _part(block: dict[str, Json], *, is_answer: bool) -> Iterable[Part]:
    if isinstance(text := block.get("text"), str):
        yield TextPart(text)
        return
    for kind, value in block.items():
        inner = le.mapping(value)
        if kind in _MARKS:
            continue
        if kind in _ATTACHED:
            yield attachment(kind, inner)
        elif kind == "toolUse":
            yield _tool_use(inner)
        elif kind == "toolResult":
            called = le.text(inner.get("toolUseId"))
            if is_answer:
                yield ServerToolCallResponsePart(called, inner)
            else:
                yield ToolCallResponsePart(called, _result(inner.get("content")))
        elif kind == "reasoningContent":
            yield ReasoningPart(le.text(le.mapping(inner.get("reasoningText")).get("text")) or "")
        elif kind == "citationsContent":
            yield from _parts(inner.get("content"))
        elif kind == "guardContent" and (guarded := le.mapping(inner.get("text"))):
            yield TextPart(le.text(guarded.get("text")) or "")
        else:
            yield GenericPart(kind, value)


def _tool_use(tool: dict[str, Json]) -> Part:
    called, name = le.text(tool.get("toolUseId")), le.text(tool.get("name")) or ""
    if tool.get("type") == "server_tool_use":
        return ServerToolCallPart(called, name, tool)
    return ToolCallPart(called, name, le.arguments(tool.get("input")))


def _result(content: Json) -> Json:
    """Return the result of a tool: its text or its JSON if that is all, else the blocks."""
    blocks = le.mappings(content)
    if len(blocks) == 1 and blocks[0].keys() <= {"text", "json"}:
        return le.field(blocks[0], "text", "json")
    return content


def _tools(config: dict[str, Json]) -> Iterable[ToolDefinition]:
    for tool in le.mappings(config.get("tools")):
        if spec := le.mapping(tool.get("toolSpec")):
            schema = le.mapping(spec.get("inputSchema")).get("json")
            name = le.text(spec.get("name")) or "function"
            yield ToolDefinition("function", name, le.text(spec.get("description")), schema)
        elif system := le.mapping(tool.get("systemTool")):
            name = le.text(system.get("name")) or "systemTool"
            yield ToolDefinition("systemTool", name)

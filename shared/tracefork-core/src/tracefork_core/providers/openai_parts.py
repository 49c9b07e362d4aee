"""Content blocks that OpenAI's two APIs share, with the variants of compatible servers."""

from __future__ import annotations

from collections.abc import Iterator

from tracefork_core.providers import media
from tracefork_core.providers.call import GenericPart, Part, ReasoningPart, TextPart, ToolDefinition
from tracefork_core.providers.lenient import Json, field, items, mapping, mappings, text

_TEXTS = ("text", "input_text", "output_text", "summary_text")
_THOUGHTS = ("thinking", "reasoning_text")


def content_parts(content: Json) -> tuple[Part, ...]:
    """Read a message's content: a string, or a list of blocks."""
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    return tuple(_part(block) for block in items(content) if isinstance(block, str | dict))


def joined_text(content: Json) -> str:
    """Join the text of a string or of a list of blocks."""
    if isinstance(content, str):
        return content
    return "".join(text(block.get("text")) or "" for block in mappings(content))


def tool_answer(content: Json) -> Json:
    """Read what a tool answered: its text where it is nothing but one text block."""
    blocks = mappings(content)
    if len(items(content)) == len(blocks) == 1 and blocks[0].get("type") in _TEXTS:
        return blocks[0].get("text")
    return content


def tool_definitions(tools: Json) -> tuple[ToolDefinition, ...]:
    """Read the tools offered, those inside a namespace after the namespace."""
    return tuple(found for tool in mappings(tools) for found in _definitions(tool))


def _definitions(tool: dict[str, Json]) -> Iterator[ToolDefinition]:
    kind = text(tool.get("type")) or "function"
    # Chat completions nest the definition under its kind, Responses does not.
    body = mapping(tool.get(kind)) or tool
    name = text(body.get("name")) or text(tool.get("server_label")) or kind
    schema = field(body, "parameters", "format")
    yield ToolDefinition(kind, name, text(body.get("description")), schema)
    for member in mappings(tool.get("tools")):
        member_name = text(member.get("name")) or "function"
        description = text(member.get("description"))
        yield ToolDefinition("function", member_name, description, member.get("parameters"))


def _part(block: str | dict[str, Json]) -> Part:
    if isinstance(block, str):
        return TextPart(block)
    kind = text(block.get("type")) or "unknown"
    if kind in _TEXTS:
        return TextPart(text(block.get("text")) or "")
    if kind in _THOUGHTS:
        return ReasoningPart(joined_text(field(block, "thinking", "text")))
    if kind == "refusal":
        return GenericPart("refusal", block.get("refusal"))
    return _attachment(kind, block) or GenericPart(kind, block)


def _attachment(kind: str, block: dict[str, Json]) -> Part | None:
    modality = next((name for name in ("image", "audio", "video") if name in kind), "document")
    nested = mapping(field(block, kind, "file", "image_url", "input_audio"))
    source = nested or block
    if file_id := text(source.get("file_id")):
        return media.from_file(file_id, modality)
    if url := text(field(source, "url", "image_url", "file_url", "document_url")):
        return media.from_url(url, modality)
    if data := text(field(source, "file_data", "data")):
        if data.startswith("data:"):
            return media.from_url(data, modality)
        form = text(source.get("format"))
        return media.from_base64(data, modality, f"{modality}/{form}" if form else None)
    return None

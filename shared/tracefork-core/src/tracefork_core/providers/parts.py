"""Read what wire formats share: content blocks, attachments, tools, parameters and errors.

The content blocks are those of OpenAI's two APIs and the variants of compatible servers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tracefork_core.providers.call import (
    BlobPart,
    FilePart,
    GenericPart,
    Message,
    ModelError,
    Part,
    ReasoningPart,
    TextPart,
    ToolDefinition,
    UriPart,
)
from tracefork_core.providers.lenient import Json, field, items, mapping, mappings, text
from tracefork_core.providers.remembered import remembered

_TEXTS = ("text", "input_text", "output_text", "summary_text")
_THOUGHTS = ("thinking", "reasoning_text")

_NEUTRAL_NAMES = {
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
    "stop": "stop_sequences",
    "stopSequences": "stop_sequences",
    "n": "choice.count",
    "candidateCount": "choice.count",
    "candidate_count": "choice.count",
    "encoding_format": "encoding_formats",
}
_LISTS = ("stop_sequences", "encoding_formats")


def content_parts(content: Json) -> tuple[Part, ...]:
    """Read the content of a message: a string, or a list of blocks."""
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    return tuple(_part(block) for block in items(content) if isinstance(block, str | dict))


def joined_text(content: Json) -> str:
    """Join the text of a string or of a list of blocks."""
    if isinstance(content, str):
        return content
    return "".join(text(block.get("text")) or "" for block in mappings(content))


def tool_answer(content: Json) -> Json:
    """Read the result of a tool: the text if it is a single text block, else the content."""
    blocks = mappings(content)
    if len(items(content)) == len(blocks) == 1 and blocks[0].get("type") in _TEXTS:
        return blocks[0].get("text")
    return content


def tool_definitions(tools: Json) -> tuple[ToolDefinition, ...]:
    """Read the tools offered; a namespace comes before the tools inside it."""
    return tuple(item for tool in mappings(tools) for item in _definitions(tool))


@remembered
def _definitions(tool: dict[str, Json]) -> tuple[ToolDefinition, ...]:
    return tuple(_defined(tool))


def _defined(tool: dict[str, Json]) -> Iterator[ToolDefinition]:
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
        return from_file(file_id, modality)
    if url := text(field(source, "url", "image_url", "file_url", "document_url")):
        return from_url(url, modality)
    if data := text(field(source, "file_data", "data")):
        if data.startswith("data:"):
            return from_url(data, modality)
        form = text(source.get("format"))
        return from_base64(data, modality, f"{modality}/{form}" if form else None)
    return None


def from_url(url: str, modality: str, mime_type: str | None = None) -> BlobPart | UriPart:
    """Read a URL; a base64 `data:` URL contains the attachment itself."""
    header, comma, data = url.partition(",")
    if comma and header.startswith("data:") and header.endswith(";base64"):
        mime_type = header[len("data:") :].split(";")[0] or mime_type
        return from_base64(data, modality, mime_type)
    return UriPart(modality_of(mime_type, modality), mime_type, url)


def from_base64(data: str, modality: str, mime_type: str | None = None) -> BlobPart:
    """Read an inline attachment; its MIME type decides its modality, else `modality` does."""
    return BlobPart(modality_of(mime_type, modality), mime_type, data)


def from_file(file_id: str, modality: str, mime_type: str | None = None) -> FilePart:
    """Read a reference to an uploaded file."""
    return FilePart(modality_of(mime_type, modality), mime_type, file_id)


def modality_of(mime_type: str | None, default: str) -> str:
    """Return the modality of a MIME type: image, video, audio or document, or the default."""
    kind = (mime_type or "").partition("/")[0]
    if kind in ("image", "video", "audio"):
        return kind
    return "document" if kind in ("text", "application") else default


def parameters(request: Mapping[str, Json], without: Collection[str]) -> dict[str, Json]:
    """Return the settings of a request except `without`, under neutral names where they exist."""
    named: dict[str, Json] = {}
    for key, value in request.items():
        if key in without or value is None:
            continue
        name = _NEUTRAL_NAMES.get(key, key)
        named[name] = [value] if name in _LISTS and isinstance(value, str) else value
    return named


def failure(status: int | None, body: dict[str, Json]) -> ModelError | None:
    """Read the error of an answer; None if it is not an error.

    The type is the provider's word for it, else its code, else the HTTP status.
    """
    error = body.get("error")
    failed = status is not None and status >= 400
    if not error and not failed:
        return None
    details = mapping(error) or body
    kind = text(details.get("type")) or text(details.get("status"))
    code = field(details, "code")
    if kind is None and isinstance(code, str | int):
        kind = str(code)
    if kind is None:
        kind = str(status) if failed else "error"
    message = text(error) or text(field(details, "message", "detail"))
    return ModelError(kind, message)


def vector(value: Json) -> Message:
    """Wrap an embedding vector as a message: numbers, or base64 as on the wire."""
    return Message("assistant", (GenericPart("embedding", value),))

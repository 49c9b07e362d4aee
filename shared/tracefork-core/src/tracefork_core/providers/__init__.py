"""What the bytes of OpenAI, Anthropic and Gemini mean, and answers and requests in their form.

Reading: `decode` finds the wire format of an exchange (`hosts` names the provider); `wire` reads
bytes as JSON and events (`content`, `sse`, `lenient`); a module for each format (`openai_chat`,
`openai_responses`, `anthropic`, `gemini`) turns those into the neutral view of `call`, with the
`parts` that formats share. `prices` says what a call cost.

Writing: `answering` makes an answer to a request (`question`) in the form of its provider (`draft`,
and an `…_answer` module for each format); `asking` edits a request, and `dropping` leaves messages
or tools out.
"""

from __future__ import annotations

from tracefork_core.providers.answering import Answer, answer, failure_answer, from_document
from tracefork_core.providers.asking import edit
from tracefork_core.providers.call import (
    BlobPart,
    FilePart,
    GenericPart,
    Message,
    ModelCall,
    ModelError,
    Part,
    ReasoningPart,
    ServerToolCallPart,
    ServerToolCallResponsePart,
    TextPart,
    ToolCallPart,
    ToolCallResponsePart,
    ToolDefinition,
    UriPart,
    Usage,
)
from tracefork_core.providers.content import decompress
from tracefork_core.providers.decode import decode, model_call
from tracefork_core.providers.lenient import Json
from tracefork_core.providers.prices import cost
from tracefork_core.providers.sse import SseDecoder, SseEvent

__all__ = [
    "Answer",
    "BlobPart",
    "FilePart",
    "GenericPart",
    "Json",
    "Message",
    "ModelCall",
    "ModelError",
    "Part",
    "ReasoningPart",
    "ServerToolCallPart",
    "ServerToolCallResponsePart",
    "SseDecoder",
    "SseEvent",
    "TextPart",
    "ToolCallPart",
    "ToolCallResponsePart",
    "ToolDefinition",
    "UriPart",
    "Usage",
    "answer",
    "cost",
    "decode",
    "decompress",
    "edit",
    "failure_answer",
    "from_document",
    "model_call",
]

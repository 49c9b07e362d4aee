"""What the bytes of OpenAI, Anthropic and Gemini mean.

General layout: `decode` finds the wire format of an exchange (`hosts` names the provider);
`wire` reads bytes as JSON and events (`content`, `sse`, `lenient`); one module per format
(`openai_chat`, `openai_responses`, `embeddings`, `anthropic`, `gemini`) turns those into the
neutral view of `call`; `taped` does so for an exchange on a tape; `prices` says what a call cost.

The other way: `answering` makes an answer to a request (`question`) out of words, in the form of
its provider (`draft`, and one `…_answer` per format; `refusing` for errors), and `asking` puts a
request otherwise (`rewording`, `dropping`, `offering`, `pointer`).
"""

from __future__ import annotations

from .answering import Answer, answer, failure_answer, from_document
from .asking import edit
from .call import (
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
from .content import decompress
from .decode import decode
from .lenient import Json
from .prices import cost
from .sse import SseDecoder, SseEvent
from .taped import model_call

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

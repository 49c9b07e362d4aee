"""What the bytes of OpenAI, Anthropic and Gemini mean.

General layout: `decode` finds the wire format of an exchange (`hosts` names the provider); `wire`
reads bytes as JSON and events (`content`, `sse`, `lenient`); one module per format (`openai_chat`,
`openai_responses`, `embeddings`, `anthropic`, `gemini`) turns those into the neutral view of
`call`, with what formats share (`openai_parts`, `media`, `parameters`, `failure`); `taped` does so
for an exchange on a tape; `prices` says what a call cost; `auxiliary` knows what is asked about
tokens alone.

The other way: `answering` makes an answer to a request (`question`) out of words, in the form of
its provider (`draft`, `encoding`, and one `…_answer` per format, with `openai_responses_stream`;
`refusing` for errors), and `asking` puts a request otherwise (`rewording`, `dropping`, `offering`,
`pointer`).
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
from tracefork_core.providers.decode import decode
from tracefork_core.providers.lenient import Json
from tracefork_core.providers.prices import cost
from tracefork_core.providers.sse import SseDecoder, SseEvent
from tracefork_core.providers.taped import model_call

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

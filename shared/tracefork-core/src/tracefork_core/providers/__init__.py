"""Read and write the wire formats of OpenAI, Anthropic and Gemini.

Reading: `decode` finds the wire format of an exchange, and `hosts` names the provider. `wire` reads
the bytes as JSON and events, with `sse` and `lenient`, and `remembered` decodes what is repeated
once. A module for each format (`openai_chat`, `openai_responses`, `anthropic`, `gemini`, and
`realtime` for sessions over websockets) turns those into the neutral view of `call`. `parts` holds
what the formats share. `prices` computes what a call cost, by the lists that `price_lists` loads;
`linear_prices` multiplies where that is all there is to it.

Writing: `answering` makes an answer to a request (`question`) in the format of its provider. The
content is a `draft`, and each format has an `…_answer` module. `asking` edits a request, and
`dropping` removes messages or tools from it. `held_state` finds what a request continues that its
provider keeps.

`traced` writes and reads a call of which only a trace kept the content.
`formats` finds the wire formats that adapters bring, which are read and written like these.
`carried` reads and writes a body of OpenAI's or Anthropic's format in an adapter's transport.
"""

from __future__ import annotations

from tracefork_core.providers import lenient
from tracefork_core.providers.answering import answer, failure_answer, from_document
from tracefork_core.providers.asking import edit, set_values
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
    ToolUse,
    UriPart,
    Usage,
    join_fragments,
)
from tracefork_core.providers.carried import Carried, answer_as, change_as, events_as, read_as
from tracefork_core.providers.decode import decode, model_call, tool_use
from tracefork_core.providers.formats import Answer, Asked, Format, Wanted, format_of
from tracefork_core.providers.lenient import Json, is_bounded
from tracefork_core.providers.parts import from_base64, from_url, parameters
from tracefork_core.providers.prices import cost
from tracefork_core.providers.sse import SseDecoder, SseEvent

__all__ = [
    "Answer",
    "Asked",
    "BlobPart",
    "Carried",
    "FilePart",
    "Format",
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
    "ToolUse",
    "UriPart",
    "Usage",
    "Wanted",
    "answer",
    "answer_as",
    "change_as",
    "cost",
    "decode",
    "edit",
    "events_as",
    "failure_answer",
    "format_of",
    "from_base64",
    "from_document",
    "from_url",
    "is_bounded",
    "join_fragments",
    "lenient",
    "model_call",
    "parameters",
    "read_as",
    "set_values",
    "tool_use",
]

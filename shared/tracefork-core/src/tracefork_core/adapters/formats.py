"""Wire formats of an adapter's own seam: how `show` reads its exchanges and forks change them.

A seam of your own sends requests that only you can read. A `Format` in the group of entry points
`tracefork.formats` says what they are: a call of a model (`ModelCall`) or of a tool (`ToolUse`).
Then `show` prints them as such, costs are counted, a fork can give another answer as a text
(`--text`) and change a request (`--set`), and blame can put them on trial.

`lenient` reads JSON of any shape without raising. Where your transport carries a body in a format
of OpenAI or Anthropic, take the transport off (`Carried`): `read_as`, `answer_as`, `events_as` and
`change_as` do the rest.

This module is apart from `tracefork_core.adapters` because it takes longer to import.
"""

from __future__ import annotations

from tracefork_core.providers import (
    Answer,
    Asked,
    BlobPart,
    Carried,
    FilePart,
    Format,
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
    ToolCallPart,
    ToolCallResponsePart,
    ToolDefinition,
    ToolUse,
    UriPart,
    Usage,
    Wanted,
    answer_as,
    change_as,
    events_as,
    from_base64,
    from_url,
    join_fragments,
    lenient,
    parameters,
    read_as,
    set_values,
)

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
    "TextPart",
    "ToolCallPart",
    "ToolCallResponsePart",
    "ToolDefinition",
    "ToolUse",
    "UriPart",
    "Usage",
    "Wanted",
    "answer_as",
    "change_as",
    "events_as",
    "from_base64",
    "from_url",
    "join_fragments",
    "lenient",
    "parameters",
    "read_as",
    "set_values",
]

"""Which form a body has: decided by its fields, for a user's own profile hides the model's name."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tracefork_bedrock.formats import converse, converse_changes
from tracefork_bedrock.formats.command import COMMAND
from tracefork_bedrock.formats.embeddings import ANY, EMBEDDINGS, is_embedding
from tracefork_bedrock.formats.reading import Dialect, metrics_of, usage_of
from tracefork_bedrock.formats.texts import TEXTS
from tracefork_core.adapters.formats import (
    Carried,
    Json,
    ModelCall,
    Wanted,
    answer_as,
    change_as,
    events_as,
    read_as,
)
from tracefork_core.adapters.formats import lenient as le

CONVERSE = Dialect(
    "output", converse.read, converse.answer, converse.events, converse_changes.change
)
_CLAUDE, _CHAT = "anthropic.messages", "openai.chat_completions"


def _read_nova(carried: Carried, model: str) -> ModelCall:
    return replace(converse.read(carried, model), api="bedrock.nova")


NOVA = CONVERSE._replace(read=_read_nova)


def _read(api: str, carried: Carried, model: str) -> ModelCall:
    call = read_as(api, carried, None)
    counted = call.usage or usage_of(metrics_of(carried.events))
    return replace(call, request_model=model, usage=counted)


def _answer(api: str, carried: Carried, wanted: Wanted, model: str) -> dict[str, Json]:
    return answer_as(api, replace(carried, request=carried.request | {"model": model}), wanted)


CLAUDE, CHAT = (
    Dialect(
        field,
        partial(_read, api),
        partial(_answer, api),
        partial(events_as, api),
        partial(change_as, api),
    )
    for api, field in ((_CLAUDE, "content"), (_CHAT, "choices"))
)


def dialect_of(operation: str, request: dict[str, Json], model: str) -> Dialect:
    """Return the form of a request to a model, and of its answers."""
    if operation.startswith("Converse"):
        return CONVERSE
    if "anthropic_version" in request:
        return CLAUDE if "messages" in request else TEXTS
    if is_embedding(request, model):
        return EMBEDDINGS
    if "messages" in request:
        return NOVA if _is_nova(request) else CLAUDE if "claude" in model.lower() else CHAT
    if "message" in request:
        return COMMAND
    if "prompt" in request or "inputText" in request:
        return TEXTS
    return ANY


def _is_nova(request: dict[str, Json]) -> bool:
    """Return whether messages have the form of Converse: their blocks have no type."""
    if "schemaVersion" in request or "inferenceConfig" in request or "toolConfig" in request:
        return True
    blocks = [
        block
        for message in le.mappings(request.get("messages"))
        for block in le.mappings(message.get("content"))
    ]
    return bool(blocks) and not any("type" in block for block in blocks)

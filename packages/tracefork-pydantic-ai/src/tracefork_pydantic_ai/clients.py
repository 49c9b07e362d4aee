"""Bind the clients of attached models, for sessions that are not ambient.

pydantic-ai makes the HTTP client of a provider again where an event loop has ended. So the client
that the provider's SDK holds is bound where a model is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel

from tracefork_core.adapters import Attached, Patches, bind_until_undo

ATTACHED = Attached("pydantic_ai")
"""The attached agents and models."""


def bind_clients(patches: Patches, model: Any) -> None:
    """Give a model clients that are recorded with `ambient=False` too, until an undo."""
    if not (ATTACHED.covers(model) or any(model is it for it in _models(*ATTACHED))):
        return
    client = getattr(model, "client", None)
    if type(client).__module__.startswith("botocore."):
        _attach_to_boto3(patches, client)
    for owner, name in _places(client):
        bind_until_undo(patches, owner, name)


def _models(*given: Any) -> Iterator[Any]:
    """Yield what is given, and the models that they ask."""
    for one in given:
        yield one
        if isinstance(one, WrapperModel):
            yield from _models(one.wrapped)
        elif isinstance(one, FallbackModel):
            yield from _models(*one.models)


def _places(client: Any) -> Iterator[tuple[Any, str]]:
    """Yield where the SDK of a provider holds its HTTP client: an object, and an attribute."""
    google = getattr(client, "_api_client", None)
    if google is not None:
        yield google, "_async_httpx_client"
        yield google._http_options, "httpx_async_client"  # noqa: SLF001 - nothing public holds it
    mistral = getattr(client, "sdk_configuration", None)
    if mistral is not None:
        yield mistral, "async_client"
    elif google is None:
        yield client, "_client"  # Of OpenAI, Anthropic, Groq and others with generated SDKs.


def _attach_to_boto3(patches: Patches, client: Any) -> None:
    try:
        from tracefork_bedrock import attach, detach
    except ModuleNotFoundError:  # Nothing records boto3 then, ambient or not.
        return
    attach(client)
    patches.at_undo(partial(detach, client))

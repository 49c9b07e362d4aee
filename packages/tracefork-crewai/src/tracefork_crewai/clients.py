"""Refuse the LLMs that cannot be recorded, and bind SDK clients for `ambient=False`.

Nearly all LLMs of CrewAI send their requests through libraries that a session instruments. The rest
of the work is done here:

- LLMs that use another library are refused by name.
- What CrewAI learns about models while it runs is forgotten when a session begins. It would make
  the second run of a process send other requests than the first.
- SDK clients are bound for sessions with `ambient=False`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tracefork_core import UsageError, bind
from tracefork_core.adapters import Patches, in_session
from tracefork_crewai.llm_events import on_call
from tracefork_crewai.misses import veto

_ORIGINAL = "_tracefork_original"
_CLIENTS = ("_client", "_async_client")
_COUNTING = "is_context_window_overflowing_threshold"
"""The method that counts the tokens of some LLMs before they are called."""
_LEARNED = ("_LEARNED_RESPONSES_ONLY_MODELS", "_LEARNED_NO_REASONING_EFFORT_MODELS")


def put_in(patches: Patches) -> None:
    """Refuse LLMs that cannot be recorded and forget what CrewAI learned."""
    _forget()
    _refuse_by_name(patches)


def bind_clients(llm: Any) -> None:
    """Give an LLM clients that send each request to the current session.

    Only clients of the SDKs of OpenAI and Anthropic can be bound. An LLM without a key makes its
    client at the first call, so there is no client to bind yet.
    """
    for name in _CLIENTS:
        client = getattr(llm, name, None)
        if client is not None and not hasattr(client, _ORIGINAL):
            with suppress(UsageError):  # `unrecordable` names it when it is called.
                bound: Any = bind(client)
                setattr(bound, _ORIGINAL, client)
                setattr(llm, name, bound)


def unbind_clients(llm: Any) -> None:
    """Give an LLM its own clients back."""
    for name in _CLIENTS:
        original = getattr(getattr(llm, name, None), _ORIGINAL, None)
        if original is not None:
            setattr(llm, name, original)


def unrecordable(llm: object) -> str | None:
    """Return why an LLM cannot be recorded here and what to do; None if it can be."""
    name = f"{type(llm).__name__}({getattr(llm, 'model', '')!r})"
    if type(llm).__module__.startswith("crewai.llms.providers.bedrock") and not _has_bedrock():
        return (
            f"{name} sends its requests through botocore, which only tracefork-bedrock records: "
            "pip install tracefork-bedrock. Or use LiteLLM: "
            f'LLM("bedrock/{getattr(llm, "model", "")}", is_litellm=True).'
        )
    if getattr(llm, "is_litellm", False) and _is_rust():
        return (
            f"{name} sends its requests through LiteLLM. LITELLM_RUST is set, so native code sends "
            "them, which tracefork does not record. Unset LITELLM_RUST."
        )
    if _is_of_crewai(llm) and not _is_ambient() and not _is_bound(llm):
        return (
            f"{name} is not bound, and this session has ambient=False. If it uses the SDK of "
            "OpenAI or Anthropic, attach it or the crew that holds it. For any other SDK, leave "
            "`ambient` on."
        )
    return None


def _has_bedrock() -> bool:
    return find_spec("tracefork_bedrock") is not None


def _is_of_crewai(llm: object) -> bool:
    return type(llm).__module__.startswith("crewai.")


def _is_ambient() -> bool:
    """Return whether the HTTP libraries themselves are instrumented."""
    return hasattr(vars(import_module("httpx").Client)["_transport_for_url"], "tracefork")


def _is_bound(llm: object) -> bool:
    asked = getattr(llm, "_responses_delegate", None) or llm
    return any(hasattr(getattr(asked, name, None), _ORIGINAL) for name in _CLIENTS)


def _is_rust() -> bool:
    configuration = sys.modules.get("litellm.rust_bridge.configuration")
    if configuration is not None and hasattr(configuration, "rust_enabled"):
        return bool(configuration.rust_enabled())
    return os.environ.get("LITELLM_RUST", "").lower() in ("1", "true", "yes", "on")


def _forget() -> None:
    completion = sys.modules.get("crewai.llms.providers.openai.completion")
    for name in _LEARNED:
        learned = getattr(completion, name, None)
        if learned is not None:
            learned.clear()


def _refuse_by_name(patches: Patches) -> None:
    on_call(patches, "started", _refuse)
    base = import_module("crewai.llms.base_llm").BaseLLM
    if _COUNTING in vars(base):
        patches.wrap(base, _COUNTING, _refusing)


def _refusing(count: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(count)
    def counted(self: Any, *args: Any, **options: Any) -> bool:
        _refuse(self)
        return count(self, *args, **options)

    return counted


def _refuse(llm: object) -> None:
    reason = unrecordable(llm) if in_session() else None
    if reason is not None:
        raise veto(UsageError(f"tracefork: {reason}"))

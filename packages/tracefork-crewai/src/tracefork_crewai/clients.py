"""The LLMs of CrewAI: nearly all ask through libraries that a session watches.

What is left for here: those that do not, which are refused by name; what CrewAI learns of models
while it runs, which would make the second run of a process ask otherwise than the first; and the
binding of SDK clients, for sessions that are not ambient.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import wraps
from importlib import import_module
from typing import Any

from tracefork_core import UsageError, bind
from tracefork_core.adapters import in_session
from tracefork_crewai.llm_events import on_call
from tracefork_crewai.misses import veto

_ORIGINAL = "_tracefork_original"
_CLIENTS = ("_client", "_async_client")
_COUNTING = "is_context_window_overflowing_threshold"
"""Some have their tokens counted before they are called."""
_LEARNED = ("_LEARNED_RESPONSES_ONLY_MODELS", "_LEARNED_NO_REASONING_EFFORT_MODELS")


def instrument() -> Callable[[], None]:
    """Refuse the LLMs that cannot be recorded, and forget what was learned; return the undoing."""
    with ExitStack() as stack:
        _forget()
        _refuse_by_name(stack)
        return stack.pop_all().close


def bind_clients(llm: Any) -> None:
    """Give an LLM clients that cross the seam of whatever session is current.

    They are those of OpenAI's and Anthropic's SDKs. One that is made when it is first used, for
    want of a key, is not there to be bound.
    """
    for name in _CLIENTS:
        client = getattr(llm, name, None)
        if client is not None and not hasattr(client, _ORIGINAL):
            with suppress(UsageError):  # Said by name where it is asked: see `unrecordable`.
                bound: Any = bind(client)
                setattr(bound, _ORIGINAL, client)
                setattr(llm, name, bound)


def unbind_clients(llm: Any) -> None:
    """Give an LLM the clients back that it had."""
    for name in _CLIENTS:
        original = getattr(getattr(llm, name, None), _ORIGINAL, None)
        if original is not None:
            setattr(llm, name, original)


def unrecordable(llm: object) -> str | None:
    """Return why an LLM cannot be recorded here, and what to do; None where it can."""
    name = f"{type(llm).__name__}({getattr(llm, 'model', '')!r})"
    if type(llm).__module__.startswith("crewai.llms.providers.bedrock"):
        return (
            f"{name} asks through botocore, which no session watches. Ask the same model through "
            f'LiteLLM: LLM("bedrock/{getattr(llm, "model", "")}", is_litellm=True).'
        )
    if getattr(llm, "is_litellm", False) and _is_rust():
        return (
            f"{name} asks through LiteLLM, and LITELLM_RUST lets it do so in native code, which no "
            "session watches. Unset LITELLM_RUST."
        )
    if _is_of_crewai(llm) and not _is_ambient() and not _is_bound(llm):
        return (
            f"{name} is not bound, and this session has ambient=False. Attach it, or what holds "
            "it, if it asks through the SDK of OpenAI or Anthropic; for another leave `ambient` on."
        )
    return None


def _is_of_crewai(llm: object) -> bool:
    return type(llm).__module__.startswith("crewai.")


def _is_ambient() -> bool:
    """Return whether the libraries that LLMs ask through are instrumented themselves."""
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


def _refuse_by_name(stack: ExitStack) -> None:
    stack.callback(on_call("started", _refuse))
    base = import_module("crewai.llms.base_llm").BaseLLM
    if _COUNTING in vars(base):
        stack.callback(setattr, base, _COUNTING, vars(base)[_COUNTING])
        setattr(base, _COUNTING, _refusing(vars(base)[_COUNTING]))


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

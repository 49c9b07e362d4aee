"""Compute what a call cost, with the price lists of the library `genai-prices`.

This reads only the price lists that the library ships. It never starts the library's updater, which
downloads newer ones.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, partial
from typing import TYPE_CHECKING

from tracefork_core.providers.call import ModelCall, Usage
from tracefork_core.tape import Exchange

if TYPE_CHECKING:
    from tracefork_core.providers.linear_prices import LinearPrices
    from tracefork_core.providers.price_lists import PriceLists

_PROVIDERS = {
    "openai": "openai",
    "azure.ai.openai": "azure",
    "aws.bedrock": "aws",
    "anthropic": "anthropic",
    "gcp.gemini": "google",
    "gcp.vertex_ai": "google",
    "groq": "groq",
    "deepseek": "deepseek",
    "openrouter": "openrouter",
    "mistral_ai": "mistral",
    "together": "together",
    "fireworks": "fireworks",
    "x_ai": "x-ai",
    "perplexity": "perplexity",
    "moonshot_ai": "moonshotai",
    "cohere": "cohere",
    "cerebras": "cerebras",
}
# A format without a line here is priced by its neutral counts alone.
_FLAVORS = {
    "openai.chat_completions": ("chat", "default"),
    "openai.responses": ("responses", "default"),
    "openai.embeddings": ("embeddings", "default"),
    "anthropic.messages": ("anthropic", "default"),
    "gemini": ("default",),
    "bedrock.converse": ("default",),
}

_OVER_AUDIO = frozenset({"openai.realtime", "gemini.live"})
"""Formats whose tokens have prices by modality, which the library does not tell apart."""


def lists() -> str | None:
    """Return the version of the installed price lists; None if they are not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("genai-prices")
    except PackageNotFoundError:
        return None


def cost(call: ModelCall, at: datetime | None) -> Decimal | None:
    """Return the price of a call in US dollars, by the price list of the time `at` (None: today).

    It never guesses. It returns None without the library, and for an unknown provider, model or
    usage. It also returns None if the library's price is zero, since the library gives zero for
    free and for unpriced models alike. A naive `at` is UTC. Counting tokens costs 0.
    """
    if call.operation == "count_tokens":
        return Decimal(0)
    if call.api in _OVER_AUDIO:
        return None
    provider = _PROVIDERS.get(call.provider or "")
    if provider is None or call.usage is None:
        return None
    lists, linear = _lists(), _linear()
    if lists is None or linear is None:
        return None
    if at is not None and at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    reported = call.usage.reported
    flavors = _FLAVORS.get(call.api, ())
    counts = linear.counts(reported, provider, flavors[0]) if flavors else None
    usage = cache(partial(_priced_usage, lists, provider, call.api, call.usage))
    for model in _models(call):
        try:
            return linear.total(counts, usage, model, provider, at, _context(call)) or None
        except (LookupError, ValueError):
            continue
    return None


@cache
def _lists() -> PriceLists | None:
    from tracefork_core.providers.price_lists import PriceLists

    return PriceLists.found()


@cache
def _linear() -> LinearPrices | None:
    from tracefork_core.providers.linear_prices import LinearPrices

    lists = _lists()
    return None if lists is None else LinearPrices(lists)


def _models(call: ModelCall) -> list[str]:
    # On Azure the request names a deployment, which may have the name of any model.
    asked = None if call.provider == "azure.ai.openai" else call.request_model
    names = [call.response_model, asked]
    if call.provider == "aws.bedrock":
        names.reverse()  # Its price depends on the region, which only the request names.
    return [model for model in names if model]


def _context(call: ModelCall) -> dict[str, str]:
    reported = call.usage.reported if call.usage else None
    speed = reported.get("speed") if isinstance(reported, dict) else None
    stated = {"service_tier": call.service_tier, "speed": speed}
    return {key: value for key, value in stated.items() if isinstance(value, str)}


def _priced_usage(lists: PriceLists, provider: str, api: str, usage: Usage) -> object:
    # The library reads the finer counts of each provider (audio, cache lifetimes, searches).
    body = {"usage": usage.reported, "usageMetadata": usage.reported}
    for flavor in _FLAVORS.get(api, ()):
        try:
            return lists.prices.extract_usage(body, provider_id=provider, api_flavor=flavor).usage
        except (LookupError, ValueError):
            continue
    return lists.types.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_input_tokens,
        cache_write_tokens=usage.cache_creation_input_tokens,
    )


def price_of(exchange: Exchange, call: ModelCall) -> Decimal | None:
    """Return what a recorded call cost by the prices of its day; None if that is unknown.

    Answers that a fork made and auxiliary exchanges, such as token counts, cost 0.
    """
    if exchange.aside.answered or exchange.is_auxiliary:
        return Decimal(0)
    return cost(call, datetime.fromtimestamp(exchange.aside.started / 1e9, UTC))

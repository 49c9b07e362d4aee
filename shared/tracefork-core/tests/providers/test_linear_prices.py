"""Prices that are multiplied are those that the library computes, to the last digit."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tracefork_core.providers.linear_prices import LinearPrices
from tracefork_core.providers.price_lists import PriceLists

_KINDS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "input_audio_tokens",
    "output_audio_tokens",
    "cache_audio_read_tokens",
    "output_reasoning_tokens",
)
_CONTEXTS: tuple[dict[str, str], ...] = ({}, {}, {"service_tier": "flex"}, {"speed": "fast"})
_LOADED = PriceLists()


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the price lists; `asked` counts what the library computes itself."""
    asked: list[str] = []
    calc = type(_LOADED.prices).calc

    def counted(self: Any, usage: Any, model: str, *words: Any, **options: Any) -> Any:
        asked.append(model)
        return calc(self, usage, model, *words, **options)

    monkeypatch.setattr(type(_LOADED.prices), "calc", counted)
    monkeypatch.setattr(_LOADED, "asked", asked, raising=False)
    return _LOADED


def result(price: Any) -> Decimal | type[Exception]:
    """Return a price, or the class of the error that says that there is none."""
    try:
        found: Decimal = price()
    except (LookupError, ValueError) as error:
        return type(error)
    return found


def test_every_price_is_that_of_the_library(lists: Any) -> None:
    """For each model: plain counts, counts with gaps, tiers, contradictions, tiers of service."""
    linear, chance, compared, wrong = LinearPrices(lists), random.Random(0), 0, []
    for provider in lists.prices.providers:
        for model in provider.models:
            for n in range(3):
                kinds = _KINDS[:3] if n % 2 else chance.sample(_KINDS, chance.randint(1, 5))
                counts = {kind: chance.choice((0, 1, 700, 300_000)) for kind in kinds}
                at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=chance.randint(0, 12_000))
                context = chance.choice(_CONTEXTS)
                usage = lists.types.Usage(**counts)
                where = model.id, provider.id, None, at, context
                theirs = result(lambda: lists.prices.calc(usage, *where).total_price)  # noqa: B023
                ours = result(
                    lambda: linear.total(counts, lambda: usage, *where[:2], at, context)  # noqa: B023
                )
                compared += 1
                wrong += [] if ours == theirs else [(where, counts, ours, theirs)]
    assert (wrong, compared > 5_000) == ([], True)


def test_the_library_is_asked_once_for_each_combination(lists: Any) -> None:
    """More tokens of the same kinds are multiplied; tokens of another kind are asked for."""
    linear = LinearPrices(lists)
    at = datetime(2025, 6, 1, tzinfo=UTC)

    def price(**counts: int) -> Decimal:
        usage = lists.types.Usage(**counts)
        return linear.total(counts, lambda: usage, "gpt-4o-2024-08-06", "openai", at, {})

    assert price(input_tokens=1_000_000, output_tokens=0) == Decimal("2.5")
    assert price(input_tokens=3_000_000, output_tokens=0) == Decimal("7.5")
    assert len(lists.asked) == 1
    assert price(input_tokens=0, output_tokens=1_000_000) == Decimal(10)
    assert len(lists.asked) == 2


def test_a_tier_is_left_to_the_library(lists: Any) -> None:
    """Gemini 2.5 Pro costs twice as much above 200,000 tokens."""
    linear = LinearPrices(lists)
    at = datetime(2025, 6, 20, tzinfo=UTC)

    def price(count: int) -> Decimal:
        counts = {"input_tokens": count, "output_tokens": 0}
        usage = lists.types.Usage(**counts)
        return linear.total(counts, lambda: usage, "gemini-2.5-pro", "google", at, {})

    assert price(200_000) * 2 * 300_000 == price(300_000) * 200_000
    assert len(lists.asked) == 2


@pytest.mark.parametrize(
    "reported",
    [
        {"prompt_tokens": 5, "completion_tokens": 6, "prompt_tokens_details": {"cached_tokens": 1}},
        {"prompt_tokens": 5, "completion_tokens": 6, "prompt_tokens_details": None},
        {"prompt_tokens": 5, "completion_tokens": 6, "prompt_tokens_details": 3},
        {"prompt_tokens": -5, "completion_tokens": 6},
        {"prompt_tokens": True, "completion_tokens": 6},
        {"completion_tokens": 6},
        [],
        None,
    ],
)
def test_counts_are_those_that_the_library_reads(lists: Any, reported: Any) -> None:
    """What is odd is left to it."""
    counts = LinearPrices(lists).counts(reported, "openai", "chat")
    read = result(lambda: vars(_extracted(lists, reported)))
    assert counts in (None, read)
    assert (counts is None) == (reported in ([], None) or read is ValueError)


def _extracted(lists: Any, reported: Any) -> Any:
    body = {"usage": reported}
    return lists.prices.extract_usage(body, provider_id="openai", api_flavor="chat").usage

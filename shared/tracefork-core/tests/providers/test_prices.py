"""Prices come from the library's price lists, or are None."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from tracefork_core.providers import Json, ModelCall, Usage, cost
from tracefork_core.providers.price_lists import PriceLists

AT = datetime(2025, 6, 1, tzinfo=UTC)
MILLION = 1_000_000


CHAT = "openai.chat_completions"


def call(provider: str | None, model: str, reported: Json, api: str = CHAT) -> ModelCall:
    usage = Usage(input_tokens=1, output_tokens=1, reported=reported)
    return ModelCall("chat", api, provider, model, usage=usage)


def chat_usage(prompt: int, completion: int, cached: int = 0) -> Json:
    details: Json = {"cached_tokens": cached}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "prompt_tokens_details": details,
    }


def test_tokens_are_priced_by_the_published_list() -> None:
    """GPT-4o of August 2024: $2.50 in, $1.25 cached, $10 out for a million tokens."""
    model = "gpt-4o-2024-08-06"
    assert cost(call("openai", model, chat_usage(MILLION, 0)), AT) == Decimal("2.5")
    assert cost(call("openai", model, chat_usage(0, MILLION)), AT) == Decimal(10)
    assert cost(call("openai", model, chat_usage(MILLION, 0, MILLION)), AT) == Decimal("1.25")


def test_anthropics_cache_has_its_own_prices() -> None:
    """Claude Sonnet 4: $3 in, $0.30 read, $3.75 written for five minutes, $6 for an hour."""
    kept: Json = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}
    reported: Json = {
        "input_tokens": 1000,
        "cache_read_input_tokens": 10000,
        "cache_creation_input_tokens": 300,
        "cache_creation": kept,
        "output_tokens": 0,
    }
    priced = cost(call("anthropic", "claude-sonnet-4-20250514", reported, "anthropic.messages"), AT)
    expected = 1000 * 3 + Decimal("0.3") * 10000 + Decimal("3.75") * 100 + 6 * 200
    assert priced == expected / MILLION


def test_geminis_thoughts_are_output() -> None:
    """Gemini 2.5 Pro in June 2025: $10 for a million tokens of output, thoughts included."""
    reported: Json = {"promptTokenCount": 0, "candidatesTokenCount": 100, "thoughtsTokenCount": 900}
    assert cost(call("gcp.gemini", "gemini-2.5-pro", reported, "gemini"), AT) == Decimal("0.01")


def test_a_provider_without_an_extractor_is_priced_by_the_plain_counts() -> None:
    """If the library cannot read the usage object, the neutral counts are used."""
    bare = call("openai", "gpt-4o-2024-08-06", {})
    assert cost(bare, AT) == Decimal("12.5") / MILLION


def test_the_price_list_of_the_day_applies() -> None:
    """o3 cost $10 for a million input tokens until 10 June 2025 and $2 after it."""
    o3 = call("openai", "o3", chat_usage(MILLION, 0))
    assert cost(o3, AT) == Decimal(10)
    assert cost(o3, AT + timedelta(days=30)) == Decimal(2)
    assert cost(o3, AT.replace(tzinfo=None)) == Decimal(10)


def test_azure_is_priced_by_the_model_that_answered() -> None:
    """The name of a deployment can be anything."""
    asked = call("azure.ai.openai", "gpt-4o", chat_usage(MILLION, 0))
    assert cost(asked, AT) is None
    answered = replace(asked, response_model="gpt-4o-2024-08-06")
    assert cost(answered, AT) == Decimal("2.5")


def test_bedrock_is_priced_by_the_model_that_was_asked() -> None:
    """The answer does not say through which region; where models run in any, they cost less."""
    reported: Json = {"inputTokens": MILLION, "outputTokens": 0, "cacheReadInputTokens": MILLION}
    model = "global.anthropic.claude-sonnet-4-5-20250929-v1:0"
    asked = call("aws.bedrock", model, reported, "bedrock.converse")
    answered = replace(asked, response_model="claude-sonnet-4-5-20250929")
    assert cost(answered, None) == cost(asked, None) == Decimal("3.30")
    regional = replace(asked, request_model=model.replace("global", "us"))
    assert cost(regional, None) == Decimal("3.63")


@pytest.mark.parametrize(
    "unknown",
    [
        call(None, "gpt-4o", chat_usage(1, 1)),
        call("nobody", "gpt-4o", chat_usage(1, 1)),
        call("openai", "no-such-model", chat_usage(1, 1)),
        call("groq", "gpt-4o", chat_usage(1, 1)),
        replace(call("openai", "gpt-4o", {}), usage=None),
        replace(call("openai", "gpt-4o", {}), usage=Usage()),
        replace(call("openai", "gpt-4o", {}), request_model=None),
        call("openai", "gpt-4o", chat_usage(1, 1, cached=5)),
        call("openai", "whisper-1", chat_usage(1, 1)),
    ],
    ids=["host", "provider", "model", "elsewhere", "no usage", "empty", "nameless", "odd", "unit"],
)
def test_an_unknown_price_is_none(unknown: ModelCall) -> None:
    """For an unknown host, provider, model or usage."""
    assert cost(unknown, AT) is None


def test_counting_tokens_is_free() -> None:
    """A count costs 0, though it reports input tokens."""
    counted = replace(call("anthropic", "claude-x", {}), operation="count_tokens")
    assert cost(counted, AT) == 0


def test_without_the_library_there_is_no_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken installation is no reason to show no tape."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setattr("tracefork_core.providers.prices._lists", PriceLists.found)
    assert cost(call("openai", "gpt-4o", chat_usage(1, 1)), AT) is None


def test_pricing_touches_no_network_and_starts_no_thread() -> None:
    """The library's updater does not run. The control shows what the guard detects."""
    program = """
import socket, sys, threading
from datetime import datetime
from tracefork_core.providers import ModelCall, Usage, cost
seen = []
network = ('socket.connect', 'socket.getaddrinfo', 'socket.sendto')
sys.addaudithook(lambda event, _: seen.append(event) if event in network else None)
call = ModelCall('chat', 'openai.chat_completions', 'openai', 'gpt-4o-mini', usage=Usage(1, 1))
assert cost(call, datetime(2025, 6, 1)), 'no price'
assert cost(call, None), 'no price today'
assert not seen and threading.active_count() == 1, (seen, threading.enumerate())
socket.getaddrinfo('127.0.0.1', 9)
assert seen == ['socket.getaddrinfo'], 'the guard is blind'
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_lists_load_without_what_downloads_and_checks_them() -> None:
    """That part takes three times as long, and the agent's own import of the package is whole."""
    code = """
import sys
from tracefork_core.providers.price_lists import PriceLists
lists = PriceLists()
assert not {"genai_prices", "pydantic", "httpx2", "asyncio"} & set(sys.modules)
usage = lists.types.Usage(input_tokens=1000, output_tokens=10)
price = lists.prices.calc(usage, "gpt-4o", "openai", None, None).total_price
import genai_prices
whole = genai_prices.calc_price(usage=genai_prices.Usage(input_tokens=1000, output_tokens=10),
                                model_ref="gpt-4o", provider_id="openai")
assert genai_prices.types.pydantic.BaseModel
assert price == whole.total_price > 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)

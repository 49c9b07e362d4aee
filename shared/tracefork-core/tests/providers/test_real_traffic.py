"""Recorded traffic of real providers: every model call is read correctly."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracefork_core.providers import ModelCall

CALLS = re.compile(
    r"/chat/completions$|/responses$|/v1/embeddings$|/v1/messages(/count_tokens)?$"
    r"|:(generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)$"
)
# Everything recorded that is no call in a format of this room.
OTHERS = re.compile(
    r"bedrock-runtime\..*/model/"  # Bedrock's own API
    r"|api\.cohere\.com/v2/embed$"  # Cohere's own API
    r"|/v1/files(/[\w-]+)?(\?|$)"
    r"|crewai\.com|localhost:3000|api\.scarf\.sh|posthog\.com"  # telemetry
    r"|example-files\.online-convert\.com|ftcdn\.net"  # downloads
)


def models(traffic: list[Any]) -> list[Any]:
    return [one for one in traffic if CALLS.search(urlsplit(one.url).path)]


def chunks(one: Any) -> list[dict[str, Any]]:
    """Read a stream in the simplest way, to compare the real reader with."""
    lines = one.response.decode().split("\n")
    payloads = [line[5:].strip() for line in lines if line.startswith("data:")]
    return [json.loads(payload) for payload in payloads if payload != "[DONE]"]


def is_stream(one: Any) -> bool:
    return bool(one.response.startswith((b"data:", b"event:")))


def reported(one: Any) -> dict[str, Any] | None:
    """Return the usage object of the raw answer, merged over the chunks of a stream."""
    found: dict[str, Any] = {}
    for body in chunks(one) if is_stream(one) else [json.loads(one.response)]:
        for holder in (body, body.get("message"), body.get("response")):
            if isinstance(holder, dict):
                usage = holder.get("usage") or holder.get("usageMetadata") or {}
                found |= {key: value for key, value in usage.items() if value is not None}
    return found or None


def expected(api: str, raw: dict[str, Any]) -> tuple[int | None, int | None]:
    """Add up input and output tokens as each provider documents its counts."""
    if api == "gemini":
        output = raw.get("candidatesTokenCount", 0) + raw.get("thoughtsTokenCount", 0)
        return raw["promptTokenCount"], output or None
    if api == "anthropic.messages":
        cache = raw["cache_read_input_tokens"] + raw["cache_creation_input_tokens"]
        return raw["input_tokens"] + cache, raw["output_tokens"]
    if api == "openai.responses":
        return raw["input_tokens"], raw["output_tokens"]
    return raw["prompt_tokens"], raw.get("completion_tokens")


def test_every_model_call_is_read(traffic: list[Any]) -> None:
    """N of N calls of each provider have a model and an output, an error or a count."""
    seen: Counter[str] = Counter()
    read: Counter[str] = Counter()
    for one in models(traffic):
        host = urlsplit(one.url).hostname or ""
        seen[host] += 1
        call = one.decode()
        assert call is not None, one.cassette
        assert call.request_model, one.cassette
        assert call.input, one.cassette
        assert (call.error is not None) == (one.status >= 400), one.cassette
        read[host] += bool(call.output or call.error or call.operation == "count_tokens")
    assert read == seen
    assert set(seen) == {
        "api.openai.com",
        "api.anthropic.com",
        "generativelanguage.googleapis.com",
        "fake-azure-endpoint.openai.azure.com",
        "api.groq.com",
        "api.mistral.ai",
        "api.deepseek.com",
        "openrouter.ai",
    }
    assert min(seen.values()) > 0
    assert sum(seen.values()) > 400


def test_other_exchanges_are_not_read_as_model_calls(traffic: list[Any]) -> None:
    """They are exactly those in formats that tracefork does not know."""
    left = [one for one in traffic if one.decode() is None]
    calls = models(traffic)
    assert left
    assert len(left) + len(calls) == len(traffic)
    assert [one.url for one in left if not OTHERS.search(one.url)] == []
    assert [one.url for one in calls if OTHERS.search(one.url)] == []


def test_usage_equals_the_reported_usage(traffic: list[Any]) -> None:
    """Counts follow each provider's arithmetic, and its usage object is kept unchanged."""
    checked: Counter[str] = Counter()
    for one in models(traffic):
        call, raw = one.decode(), reported(one)
        if call.operation == "count_tokens":
            continue
        assert (call.usage is None) == (raw is None), one.cassette
        if raw is not None:
            assert call.usage.reported == raw, one.cassette
            counted = (call.usage.input_tokens, call.usage.output_tokens)
            assert counted == expected(call.api, raw), one.cassette
            checked[call.api] += 1
    assert len(checked) == 5
    assert min(checked.values()) > 10


def test_streams_are_joined_without_loss(traffic: list[Any]) -> None:
    """Text and tool arguments equal the deltas, joined in the simplest way."""
    streams = [one for one in models(traffic) if is_stream(one)]
    assert len(streams) > 20
    for one in streams:
        text, written = "", ""
        for chunk in chunks(one):
            if "choices" in chunk:
                deltas = [choice["delta"] for choice in chunk["choices"]]
                text += "".join(delta.get("content") or "" for delta in deltas)
                calls = [call for delta in deltas for call in delta.get("tool_calls") or []]
                written += "".join(call["function"].get("arguments") or "" for call in calls)
            elif chunk["type"] == "response.output_text.delta":
                text += chunk["delta"]
            elif chunk["type"] == "content_block_delta":
                text += chunk["delta"].get("text", "")
        call = one.decode()
        assert call.stream, one.cassette
        assert call.text == text, one.cassette
        if call.api == "openai.chat_completions" and len(call.tool_calls) == 1:
            assert call.tool_calls[0].arguments == json.loads(written), one.cassette


def test_generic_parts_are_only_those_without_a_neutral_kind(traffic: list[Any]) -> None:
    """Each kind of part that keeps its provider's name is on a short list."""
    generic: Counter[str] = Counter()
    for one in models(traffic):
        call = one.decode()
        parts = [part for message in (*call.input, *call.output) for part in message.parts]
        plain = [part.type for part in parts if type(part).__name__ == "GenericPart"]
        generic.update(plain)
    # `unknown` is one client's bug: whole messages nested where content blocks belong.
    assert set(generic) == {"embedding", "additional_tools", "tool_addition", "document", "unknown"}


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_a_real_answer_cut_or_broken_anywhere_never_raises(
    traffic: list[Any], data: st.DataObject
) -> None:
    """A truncated stream gives a prefix of its text, and a broken body gives what can be read."""
    one = data.draw(st.sampled_from(models(traffic)))
    cut = data.draw(st.integers(0, len(one.response)))
    whole, part = one.decode(), one.decode(one.response[:cut])
    assert isinstance(part, ModelCall)
    if is_stream(one):
        assert whole.text.startswith(part.text)
    at = data.draw(st.integers(0, len(one.response)))
    noise = data.draw(st.binary(min_size=1, max_size=4))
    broken = one.response[:at] + noise + one.response[at + 1 :]
    assert isinstance(one.decode(broken), ModelCall)


def test_a_changed_count_is_noticed(traffic: list[Any]) -> None:
    """The control of the comparison above: one token more in the answer is one more read."""
    one = next(
        one for one in models(traffic) if b'"completion_tokens":' in one.response.replace(b" ", b"")
    )
    changed = re.sub(
        rb'("completion_tokens":\s*)(\d+)',
        lambda found: found[1] + str(int(found[2]) + 1).encode(),
        one.response,
    )
    raw, before, after = reported(one), one.decode().usage, one.decode(changed).usage
    assert raw is not None
    assert after.output_tokens == before.output_tokens + 1
    counted = (after.input_tokens, after.output_tokens)
    assert counted != expected("openai.chat_completions", raw)

"""Requests about tokens are told apart from those that ask a model."""

from __future__ import annotations

import pytest

from tracefork_core.exchange.kind import is_auxiliary

COUNTS = [
    "https://api.openai.com/v1/responses/input_tokens",
    "https://mine.openai.azure.com/openai/v1/responses/input_tokens?api-version=preview",
    "https://api.anthropic.com/v1/messages/count_tokens?beta=true",
    "https://us-east5-aiplatform.googleapis.com/v1/p/models/count-tokens:rawPredict",
    "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:countTokens",
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude/count-tokens",
]
MODELS = [
    "https://api.openai.com/v1/responses",
    "https://api.openai.com/v1/chat/completions",
    "https://api.anthropic.com/v1/messages",
    "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent",
    "https://example.com/?q=/messages/count_tokens",
]
ENCODING = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


@pytest.mark.parametrize("url", COUNTS)
def test_a_token_count_is_auxiliary(url: str) -> None:
    """Of every provider that has one, posted; what is read at such a place is something else."""
    assert is_auxiliary("POST", url)
    assert not is_auxiliary("GET", url)


@pytest.mark.parametrize("url", MODELS)
def test_a_call_of_a_model_is_not(url: str) -> None:
    """Nor what has such a path in its query."""
    assert not is_auxiliary("POST", url)


def test_downloads_of_tokenizers_are_auxiliary() -> None:
    """It is fetched once on each machine; other files of that host are not it."""
    assert is_auxiliary("GET", ENCODING)
    assert not is_auxiliary("GET", ENCODING.replace("encodings", "other"))
    assert not is_auxiliary("POST", ENCODING)


PRICES = (
    "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
)


def test_downloads_of_model_prices_are_auxiliary() -> None:
    """LiteLLM fetches it where it is imported; other files of that host are an agent's own."""
    assert is_auxiliary("GET", PRICES)
    assert not is_auxiliary("GET", PRICES.replace("BerriAI/litellm", "somebody/prompts"))


TOKENIZER = "https://huggingface.co/Xenova/llama-3-tokenizer/resolve/main/tokenizer.json"


@pytest.mark.parametrize(
    "url",
    [
        TOKENIZER,
        TOKENIZER.replace("huggingface.co", "mirror.example"),
        "https://huggingface.co/api/agent-harnesses",
        "https://cas-bridge.xethub.hf.co/x/y?response-content-disposition=tokenizer.json",
    ],
)
def test_a_tokenizer_is_auxiliary(url: str) -> None:
    """Which of its files are fetched depends on the cache of the machine."""
    assert is_auxiliary("GET", url)
    assert is_auxiliary("HEAD", url)
    assert not is_auxiliary("POST", url)


@pytest.mark.parametrize(
    "url", ["https://huggingface.co/x/resolve/main/data.json", "https://huggingface.co/api/models"]
)
def test_other_files_are_part_of_the_run(url: str) -> None:
    """What an agent reads there is what it works with."""
    assert not is_auxiliary("GET", url)

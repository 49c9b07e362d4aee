"""Auxiliary requests, such as token counts, are not calls of a model."""

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
    """For every provider that has one, and only with POST."""
    assert is_auxiliary("POST", url)
    assert not is_auxiliary("GET", url)


@pytest.mark.parametrize("url", MODELS)
def test_a_model_call_is_not_auxiliary(url: str) -> None:
    """Nor is a request with such a path in its query."""
    assert not is_auxiliary("POST", url)


def test_downloads_of_tokenizers_are_auxiliary() -> None:
    """Each machine downloads them once; other files of that host are not auxiliary."""
    assert is_auxiliary("GET", ENCODING)
    assert not is_auxiliary("GET", ENCODING.replace("encodings", "other"))
    assert not is_auxiliary("POST", ENCODING)


PRICES = (
    "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
)


def test_downloads_of_model_prices_are_auxiliary() -> None:
    """LiteLLM downloads them when it is imported; other files of that host are not auxiliary."""
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
def test_files_of_a_tokenizer_are_auxiliary(url: str) -> None:
    """Which of them are downloaded depends on the cache of the machine."""
    assert is_auxiliary("GET", url)
    assert is_auxiliary("HEAD", url)
    assert not is_auxiliary("POST", url)


@pytest.mark.parametrize(
    "url", ["https://huggingface.co/x/resolve/main/data.json", "https://huggingface.co/api/models"]
)
def test_other_files_are_part_of_the_run(url: str) -> None:
    """An agent works with the files that it reads there."""
    assert not is_auxiliary("GET", url)

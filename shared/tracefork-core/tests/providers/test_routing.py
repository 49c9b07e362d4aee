"""Which exchanges are model calls, and of which provider."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tracefork_core import providers
from tracefork_core.providers import ModelCall, decode

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def route(url: str, request: object, method: str = "POST") -> ModelCall | None:
    return decode(method, url, [], json.dumps(request).encode(), 200, [], b"{}")


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("https://api.openai.com/v1/chat/completions", "openai"),
        ("https://eu.api.openai.com/v1/chat/completions", "openai"),
        ("https://x.openai.azure.com/openai/v1/chat/completions?api-version=1", "azure.ai.openai"),
        ("https://api.groq.com/openai/v1/chat/completions", "groq"),
        ("https://api.deepseek.com/chat/completions", "deepseek"),
        ("https://openrouter.ai/api/v1/chat/completions/", "openrouter"),
        ("https://api.mistral.ai/v1/chat/completions", "mistral_ai"),
        ("https://api.together.xyz/v1/chat/completions", "together"),
        ("https://api.fireworks.ai/inference/v1/chat/completions", "fireworks"),
        ("https://API.X.AI./v1/chat/completions", "x_ai"),
        ("https://bedrock-runtime.us-west-2.amazonaws.com/v1/chat/completions", "aws.bedrock"),
        ("https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com/v1/messages", "aws.bedrock"),
        ("https://bedrock.example.com/v1/chat/completions", None),
        ("http://localhost:11434/v1/chat/completions", None),
        ("http://[::1]:8000/v1/chat/completions", None),
        ("https://api.openai.com.example.net/v1/chat/completions", None),
        ("https://notapi.openai.com/v1/chat/completions", None),
    ],
)
def test_the_path_makes_it_a_call_and_the_host_names_the_provider(
    url: str, provider: str | None
) -> None:
    """Every compatible server is read; only a known host has a provider name."""
    call = route(url, CHAT)
    assert call is not None
    assert (call.provider, call.request_model) == (provider, "m")


def test_azure_names_its_deployment_in_the_path() -> None:
    """The body of an Azure request may leave out the model."""
    host = "https://x.openai.azure.com/openai/deployments/my-gpt"
    call = route(f"{host}/chat/completions?api-version=2024-12-01", {"messages": []})
    assert call is not None
    assert (call.request_model, call.provider) == ("my-gpt", "azure.ai.openai")
    embedded = route(f"{host}/embeddings?api-version=2024-12-01", {"input": "a"})
    assert embedded is not None
    assert embedded.request_model == "my-gpt"


@pytest.mark.parametrize(
    ("method", "url", "request_body"),
    [
        ("GET", "https://api.openai.com/v1/chat/completions", CHAT),
        ("POST", "https://api.openai.com/v1/files", CHAT),
        ("POST", "https://api.openai.com/v1/threads/t/messages", CHAT),
        ("POST", "https://api.openai.com/v1/responses/r1/cancel", {}),
        ("POST", "https://api.anthropic.com/v1/messages/batches", {"requests": []}),
        ("POST", "https://generativelanguage.googleapis.com/v1beta/models/g:predict", CHAT),
        ("POST", "https://survey.example/forms/7/responses", {"answers": []}),
        ("POST", "https://chat.example/api/v1/messages", {"text": "hi"}),
        ("POST", "https://x.example/embeddings", ["not an object"]),
        ("POST", "http://[broken/chat/completions", CHAT),
        ("POST", "", CHAT),
    ],
)
def test_anything_else_is_not_a_model_call(method: str, url: str, request_body: object) -> None:
    """Another method or path, or a body of another shape at an unknown host, gives None."""
    assert route(url, request_body, method) is None


def test_a_known_provider_needs_no_readable_request() -> None:
    """An unreadable request to a known host is still a call."""
    known = decode(
        "POST", "https://api.openai.com/v1/chat/completions", [], b"\xff", 400, [], b"\xff"
    )
    assert known is not None
    assert (known.request_model, known.input, known.output) == (None, (), ())
    assert known.error is not None
    assert decode("POST", "http://localhost/chat/completions", [], b"\xff", 400, [], b"") is None


def test_the_public_names_are_sorted_and_exist() -> None:
    """Each name in `__all__` is an attribute of the package."""
    assert sorted(providers.__all__) == providers.__all__
    assert all(hasattr(providers, name) for name in providers.__all__)


def test_importing_providers_loads_no_heavy_library() -> None:
    """Prices and brotli are loaded when they are first needed."""
    program = (
        "import sys, tracefork_core.providers\n"
        "heavy = {'genai_prices', 'pydantic', 'brotli', 'httpx', 'httpx2', 'yaml'}\n"
        "sys.exit(','.join(heavy & set(sys.modules)) or 0)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")

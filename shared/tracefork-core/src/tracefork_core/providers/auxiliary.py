"""Which requests are auxiliary: asked about tokens, before or after a model is asked.

Frameworks count tokens to see what still fits. They do without where nobody answers, mostly with an
estimate, and whether they ask at all depends on the host, the version and what is cached. So such
a request is recorded, but a run that asks for more or fewer of them is the same run.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

_ENDINGS = (
    "/responses/input_tokens",  # OpenAI, Azure
    "/messages/count_tokens",  # Anthropic
    "/count-tokens:rawPredict",  # Anthropic on Vertex AI
    ":countTokens",  # Gemini
    "/count-tokens",  # Bedrock
)
_VOCABULARIES = ("openaipublic.blob.core.windows.net", "/encodings/")
"""Where tiktoken gets what it counts with, once on each machine."""


@lru_cache(maxsize=1024)
def is_auxiliary(method: str, url: str) -> bool:
    """Return whether a request is asked about tokens alone."""
    parts = urlsplit(url)
    if method == "POST":
        return parts.path.endswith(_ENDINGS)
    host, folder = _VOCABULARIES
    return method == "GET" and parts.hostname == host and parts.path.startswith(folder)

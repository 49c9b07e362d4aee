"""Which requests are auxiliary: asked about tokens, before or after a model is asked.

Frameworks count tokens to see what still fits, and LiteLLM fetches what a token costs and how many
a model takes. They do without where nobody answers, mostly with an estimate, and whether they ask
at all depends on the host, the version and what is cached or imported. So such a request is
recorded, since what they do hangs on the answer, but a run that asks for more or fewer of them is
the same run.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

_ENDINGS = (
    "/responses/input_tokens",  # OpenAI, Azure
    "/messages/count_tokens",  # Anthropic
    "/count-tokens:rawPredict",  # Anthropic on Vertex AI
    ":countTokens",  # Gemini
    "/count-tokens",  # Bedrock
)
_VOCABULARIES = ("openaipublic.blob.core.windows.net", "/encodings/")
"""Where tiktoken gets what it counts with, once on each machine."""
_TOKENIZER = re.compile(r"/resolve/[^/]+/tokenizer[^/]*$")
"""Where LiteLLM and others get it from Hugging Face, or from a mirror of that."""
_HARNESSES = "/api/agent-harnesses"
"""What Hugging Face's client asks for once a day, before anything else."""
_STORES = (".hf.co", ".huggingface.co")
_MODELS = ("raw.githubusercontent.com", "/BerriAI/litellm/")
"""Where LiteLLM gets prices, limits and abilities of models from, once when it is imported."""


@lru_cache(maxsize=1024)
def is_auxiliary(method: str, url: str) -> bool:
    """Return whether a request is asked about tokens, and need not be asked."""
    parts = urlsplit(url)
    if method == "POST":
        return parts.path.endswith(_ENDINGS)
    return method in ("GET", "HEAD") and _is_fetched_once(parts)


def _is_fetched_once(parts: SplitResult) -> bool:
    for host, folder in (_VOCABULARIES, _MODELS):
        if parts.hostname == host:
            return parts.path.startswith(folder)
    if parts.path == _HARNESSES or _TOKENIZER.search(parts.path):
        return True
    # Large files lie elsewhere, under a name that says nothing.
    return (parts.hostname or "").endswith(_STORES) and "tokenizer" in parts.query

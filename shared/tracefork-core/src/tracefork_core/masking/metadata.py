"""Keep secrets out of what a framework says about its checkpoints.

LangGraph, for one, keeps every word of a run's config as metadata of each checkpoint, keys for
providers among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from tracefork_core.masking.names import secret_values
from tracefork_core.masking.patterns import tokens
from tracefork_core.masking.redactor import placeholder

_KEY = re.compile(r"(?<![A-Za-z0-9])keys?(?![A-Za-z0-9])", re.IGNORECASE)
_KEY_TO_SOMETHING = re.compile(
    r"(access|account|api|auth|encryption|license|master|private|secret|service|signing)"
    r"[-_. ]?keys?"
)
_CHANCE = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S{16,}")


def without_secrets(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return metadata with placeholders for secrets, told by their names or by their look."""
    return {name: _clean(name, value) for name, value in metadata.items()}


def _clean(name: str, value: object) -> object:
    if isinstance(value, str):
        return _clean_text(name, value)
    if isinstance(value, Mapping):
        return {key: _clean(key if isinstance(key, str) else name, value[key]) for key in value}
    if isinstance(value, (list, tuple)):
        return [_clean(name, one) for one in value]
    return value


@lru_cache(maxsize=1024)
def _clean_text(name: str, text: str) -> str:
    # A sort key is no secret; an API key is, and so is one that only chance can have written.
    if not _KEY_TO_SOMETHING.search(name.lower()) and not _CHANCE.fullmatch(text):
        telling = _KEY.sub("", name)
    else:
        telling = name
    for secret in sorted(secret_values(telling, text), key=len, reverse=True):
        text = text.replace(secret, placeholder(name))
    data = text.encode("utf-8", "surrogatepass")
    for start, end, kind in sorted(tokens(data, 0, len(data)), reverse=True):
        data = data[:start] + placeholder(kind).encode() + data[end:]
    return data.decode("utf-8", "replace")

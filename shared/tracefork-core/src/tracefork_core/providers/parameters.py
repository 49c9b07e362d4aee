"""Request settings under the names of `gen_ai.request.*`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tracefork_core.providers.lenient import Json

_NEUTRAL_NAMES = {
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
    "stop": "stop_sequences",
    "stopSequences": "stop_sequences",
    "n": "choice.count",
    "candidateCount": "choice.count",
    "candidate_count": "choice.count",
    "encoding_format": "encoding_formats",
}
_LISTS = ("stop_sequences", "encoding_formats")


def parameters(request: Mapping[str, Json], without: Collection[str]) -> dict[str, Json]:
    """Give every setting but those the call shows elsewhere; the unnamed keep their own names."""
    named: dict[str, Json] = {}
    for key, value in request.items():
        if key in without or value is None:
            continue
        name = _NEUTRAL_NAMES.get(key, key)
        named[name] = [value] if name in _LISTS and isinstance(value, str) else value
    return named

"""What OpenTelemetry's conventions ask of messages, as JSON Schema.

Condensed from gen-ai-input-messages.json, gen-ai-output-messages.json,
gen-ai-system-instructions.json and gen-ai-tool-definitions.json of
https://github.com/open-telemetry/semantic-conventions-genai, version 0.1.0: the required fields of
each part and their types. Those schemas take any part of an unknown type.
"""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

_STRING = {"type": "string"}
_OPTIONAL = {"type": ["string", "null"]}
_RECORD = {"type": "object", "required": ["type"], "properties": {"type": _STRING}}
_ATTACHED = {"modality": _STRING, "mime_type": _OPTIONAL}

_PARTS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "text": (["content"], {"content": _STRING}),
    "reasoning": (["content"], {"content": _STRING}),
    "tool_call": (["name"], {"id": _OPTIONAL, "name": _STRING}),
    "tool_call_response": (["response"], {"id": _OPTIONAL}),
    "server_tool_call": (["name", "server_tool_call"], {"server_tool_call": _RECORD}),
    "server_tool_call_response": (
        ["server_tool_call_response"],
        {"id": _OPTIONAL, "server_tool_call_response": _RECORD},
    ),
    "blob": (["modality", "content"], {**_ATTACHED, "content": _STRING}),
    "file": (["modality", "file_id"], {**_ATTACHED, "file_id": _STRING}),
    "uri": (["modality", "uri"], {**_ATTACHED, "uri": _STRING}),
}
_PART = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": _STRING},
    "allOf": [
        {
            "if": {"properties": {"type": {"const": kind}}},
            "then": {"required": required, "properties": properties},
        }
        for kind, (required, properties) in _PARTS.items()
    ],
}
_MESSAGES: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["role", "parts"],
        "properties": {
            "role": _STRING,
            "parts": {"type": "array", "items": _PART},
            "name": _OPTIONAL,
            "finish_reason": _STRING,
        },
    },
}
_ANSWERS = {
    "type": "array",
    "items": {
        **_MESSAGES["items"],
        "required": ["role", "parts", "finish_reason"],
    },
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "gen_ai.input.messages": _MESSAGES,
    "gen_ai.output.messages": _ANSWERS,
    "gen_ai.system_instructions": {"type": "array", "items": _PART},
    "gen_ai.tool.definitions": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["type", "name"],
            "properties": {
                "type": _STRING,
                "name": _STRING,
                "description": _OPTIONAL,
                "parameters": {"type": ["object", "boolean", "null"]},
            },
        },
    },
}


def violations(attribute: str, value: object) -> list[str]:
    """Return what the conventions do not allow in the value of an attribute, parsed."""
    return [error.message for error in Draft202012Validator(SCHEMAS[attribute]).iter_errors(value)]

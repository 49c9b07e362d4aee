"""Amazon Bedrock's InvokeModel with the format of Claude, and InvokeAgent."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace

from tracefork_testkit.anthropic import Anthropic
from tracefork_testkit.bedrock import Bedrock, model_in, request_id
from tracefork_testkit.conversation import Message, ModelRequest
from tracefork_testkit.dialect import Headers, Json, words
from tracefork_testkit.event_stream import event
from tracefork_testkit.script import Reply, Usage
from tracefork_testkit.stamp import Stamp

_CLAUDE = Anthropic()


class BedrockInvoke(Bedrock):
    """Speak POST /model/{model}/invoke and /model/{model}/invoke-with-response-stream."""

    def read(self, path: str, payload: Json) -> ModelRequest:
        """Decode the body, which has the format of the model."""
        return replace(
            _CLAUDE.read(path, payload),
            provider="bedrock.invoke",
            model=model_in(path),
            stream=path.partition("?")[0].endswith("-stream"),
        )

    def body(self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp) -> Json:
        """Return the message as the model's own API has it."""
        return _CLAUDE.body(request, reply, usage, stamp)

    def events(
        self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp
    ) -> Iterator[bytes]:
        """Yield the model's own events, each in the frame of a chunk."""
        metrics = {
            "inputTokenCount": usage.input_tokens,
            "outputTokenCount": usage.output_tokens,
            "invocationLatency": stamp.below(2000, "latency"),
        }
        for sent in _CLAUDE.events(request, reply, usage, stamp):
            data = json.loads(sent.partition(b"data: ")[2])
            if data["type"] == "message_stop":
                data["amazon-bedrock-invocationMetrics"] = metrics
            yield _chunk(json.dumps(data).encode())


class BedrockAgent(Bedrock):
    """Speak POST /agents/{agent}/agentAliases/{alias}/sessions/{session}/text."""

    def read(self, path: str, payload: Json) -> ModelRequest:
        """Decode a question to an agent."""
        asked = Message("user", payload.get("inputText", ""))
        agent = path.split("/agents/", 1)[1].split("/", 1)[0]
        return ModelRequest(
            provider="bedrock.agent",
            model=agent,
            system="",
            messages=(asked,),
            tools=(),
            stream=True,
            payload=payload,
        )

    def body(self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp) -> Json:
        """Return the text, which no client asks for: agents always stream."""
        return {"completion": reply.text}

    def events(
        self, request: ModelRequest, reply: Reply, usage: Usage, stamp: Stamp
    ) -> Iterator[bytes]:
        """Yield the text in chunks."""
        for word in words(reply.text):
            yield _chunk(word.encode())

    def headers(self, stamp: Stamp) -> Headers:
        """Return the headers that name the session."""
        return [
            ("x-amzn-requestid", request_id(stamp)),
            ("x-amzn-bedrock-agent-content-type", "application/json"),
            ("x-amz-bedrock-agent-session-id", stamp.letters("session", 12)),
        ]


def _chunk(data: bytes) -> bytes:
    return event("chunk", {"bytes": b64encode(data).decode()})

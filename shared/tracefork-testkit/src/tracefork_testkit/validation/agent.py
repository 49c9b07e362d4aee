"""A typical support agent: a loop around a model's SDK, with tools."""

from __future__ import annotations

import json
from typing import TypeAlias

import openai

from tracefork_testkit.validation.shop import CUSTOMER, ORDER, PAID, Shop

Client: TypeAlias = openai.OpenAI
MODEL = "scripted-support-1"  # In no price list, so that cost counts calls on every machine.
SYSTEM = "You answer for Northwind Kitchen. You may issue refunds that the policy allows."
GREETING = "Hello there!"
REQUEST = f"I am customer {CUSTOMER}. My kettle arrived broken, and I would like my money back."
NOTES = "What is noted about the customer: "
_MOST_TURNS = 9
_SECONDS = 60.0


def _tool(name: str, **arguments: str) -> dict[str, object]:
    properties = {argument: {"type": kind} for argument, kind in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": list(arguments)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS = [
    _tool("look_up_order", order="integer"),
    _tool("search_notes", customer="string"),
    _tool("search_policy", topic="string"),
    _tool("issue_refund", order="integer", amount="integer"),
]


class SupportAgent:
    """Answers a refund request, usually in eight exchanges: four with tools, four with the model.

    Args:
        client: the client of the model.
        shop: the shop with the agent's tools.
    """

    def __init__(self, client: Client, shop: Shop) -> None:
        self._client = client
        self._shop = shop

    def serve(self) -> str:
        """Read the notes, then call the model until it requests no more tools."""
        notes = json.dumps(self._shop.search_notes(CUSTOMER))
        messages: list[dict[str, object]] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": GREETING},
            {"role": "user", "content": REQUEST},
            {"role": "user", "content": NOTES + notes},
        ]
        for _ in range(_MOST_TURNS):
            answer = self._client.chat.completions.create(
                model=MODEL, messages=messages, tools=TOOLS
            )
            message = answer.choices[0].message
            if not message.tool_calls:
                return message.content or ""
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                arguments = json.loads(call.function.arguments)
                result = json.dumps(self._shop.call(call.function.name, arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return "I have to give up."


def client(url: str) -> Client:
    """Return a client without retries for a provider on loopback; use it in a `with` block."""
    direct = openai.DefaultHttpxClient(trust_env=False)  # Ignores proxies of the environment.
    return Client(
        base_url=f"{url}/v1",
        api_key="sk-none",
        max_retries=0,
        timeout=_SECONDS,
        http_client=direct,
    )


def good(answer: object) -> bool:
    """Return whether an answer tells the customer about the correct refund."""
    return f"refunded {PAID} euros for order {ORDER}." in str(answer)

"""A support agent as people write them: a loop around a model's SDK, with tools."""

from __future__ import annotations

import json
from typing import TypeAlias

import openai

from tracefork_testkit.validation.shop import CUSTOMER, ORDER, PAID, Shop

Client: TypeAlias = openai.OpenAI
MODEL = "scripted-support-1"  # No price list has it: what is weighed is calls, everywhere.
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
    """Answers one request for a refund. Usually eight exchanges: four with tools, four with models.

    Args:
        client: of the model.
        shop: whose tools it has.
    """

    def __init__(self, client: Client, shop: Shop) -> None:
        self._client = client
        self._shop = shop

    def serve(self) -> str:
        """Retrieve what is noted, then ask the model until it has no more tools to call."""
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
            said = answer.choices[0].message
            if not said.tool_calls:
                return said.content or ""
            messages.append(said.model_dump(exclude_none=True))
            for call in said.tool_calls:
                arguments = json.loads(call.function.arguments)
                result = json.dumps(self._shop.call(call.function.name, arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return "I have to give up."


def client(url: str) -> Client:
    """Return a client of a provider on loopback, to be closed by `with`. It asks nothing twice."""
    direct = openai.DefaultHttpxClient(trust_env=False)  # No proxy of the environment's.
    return Client(
        base_url=f"{url}/v1",
        api_key="sk-none",
        max_retries=0,
        timeout=_SECONDS,
        http_client=direct,
    )


def good(answer: object) -> bool:
    """Return whether the customer got what is theirs, and was told so."""
    return f"refunded {PAID} euros for order {ORDER}." in str(answer)

"""A plain OpenAI agent with two tools, no framework: look an order up, then refund it.

`@tracefork.tool` puts their calls on the tape. A replay answers them, so it refunds nothing again.
"""

import json

import openai

import tracefork_core as tracefork

ORDERS = {17: "arrived broken, paid 40 euros"}


@tracefork.tool(effect="read")
def find_order(number: int) -> str:
    """Look an order up."""
    return ORDERS[number]


@tracefork.tool(effect="write")
def refund(number: int, euros: int) -> str:
    """Refund an order."""
    with open("refunds.log", "a") as log:
        log.write(f"order {number}: {euros} euros\n")
    return f"refunded {euros} euros"


FUNCTIONS = {"find_order": find_order, "refund": refund}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find_order",
            "description": "Look an order up.",
            "parameters": {"type": "object", "properties": {"number": {"type": "integer"}}},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "refund",
            "description": "Refund an order.",
            "parameters": {
                "type": "object",
                "properties": {"number": {"type": "integer"}, "euros": {"type": "integer"}},
            },
        },
    },
]


def main(question: str = "Order 17 arrived broken. Please refund me.") -> str:
    """Call the model until it calls no more tools, and return its answer."""
    client = openai.OpenAI()
    messages = [{"role": "user", "content": question}]
    while True:
        answer = client.chat.completions.create(model="gpt-5-mini", messages=messages, tools=TOOLS)
        message = answer.choices[0].message
        messages.append(message.to_dict())
        if not message.tool_calls:
            print(message.content)
            return message.content or ""
        for call in message.tool_calls:
            result = FUNCTIONS[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    main()

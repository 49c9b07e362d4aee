"""The agent under test: one question to a model."""

import openai


def answer(question: str) -> str:
    """Return the model's answer."""
    messages = [{"role": "user", "content": question}]
    reply = openai.OpenAI().chat.completions.create(model="gpt-5-mini", messages=messages)
    return reply.choices[0].message.content or ""

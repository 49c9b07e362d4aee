"""Two questions to a model; the second builds on the first answer."""

import openai


def main() -> None:
    """Print the second answer."""
    client = openai.OpenAI()
    messages = []
    for question in ("Where is order 17?", "Write that to the customer, politely."):
        messages.append({"role": "user", "content": question})
        answer = client.chat.completions.create(model="gpt-5-mini", messages=messages)
        messages.append({"role": "assistant", "content": answer.choices[0].message.content})
    print(messages[-1]["content"])


if __name__ == "__main__":
    main()

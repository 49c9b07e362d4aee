"""An Anthropic agent that streams its answer. Its prompt contains the time, to the second."""

from datetime import datetime

import anthropic


def main(question: str = "Where is order 17?") -> str:
    """Print the answer as it arrives, and return it."""
    client = anthropic.Anthropic()
    with client.messages.stream(
        model="claude-sonnet-4-5",
        max_tokens=200,
        system=f"You answer support tickets. It is {datetime.now():%Y-%m-%d %H:%M:%S}.",
        messages=[{"role": "user", "content": question}],
    ) as stream:
        for text in stream.text_stream:
            print(text, end="", flush=True)
        print()
        return stream.get_final_text()


if __name__ == "__main__":
    main()

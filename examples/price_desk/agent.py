"""An agent that repairs prices.py, checks it, and decides whether to merge."""

import openai
from tools import edit, run_checks


def ask(text: str) -> str:
    """Ask the model one question."""
    client = openai.OpenAI()
    messages = [{"role": "user", "content": text}]
    reply = client.chat.completions.create(model="gpt-5-mini", messages=messages)
    return reply.choices[0].message.content


def main() -> None:
    """Repair, check, and decide."""
    ask("The total of two prices is wrong. Which line of prices.py has to change?")
    edit("prices.py", "def total(prices):\n    return sum(prices)\n")
    report = run_checks()
    ask(f"The checks ended with {report['exit_code']}. Merge?")
    print("merged" if report["exit_code"] == 0 else "rejected")


if __name__ == "__main__":
    main()

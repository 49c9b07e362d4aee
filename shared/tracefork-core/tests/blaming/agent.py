"""An agent of six steps. The model decides at one step, and all later steps repeat it."""

from __future__ import annotations

import os

import httpx2

from tracefork_testkit import ModelRequest, Reply

STEPS = 6


def ask(client: httpx2.Client, text: str) -> str:
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": text}]}
    answer = client.post(f"{os.environ['PROVIDER']}/v1/chat/completions", json=body)
    return str(answer.json()["choices"][0]["message"]["content"])


def agent() -> str:
    """Ask at each step with the answer of the step before; return the last answer."""
    said = "begin"
    with httpx2.Client(verify=False, timeout=30) as client:
        for step in range(STEPS):
            said = ask(client, f"step {step} after: {said}")
    return said


def good(answer: object) -> bool:
    return "refund" in str(answer)


class Desk:
    """A model that decides at step `root`, differently over time; later steps repeat it."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.asked = 0
        self.decided = 0

    def __call__(self, request: ModelRequest) -> Reply:
        self.asked += 1
        step, before = request.last_user_text.removeprefix("step ").split(" after: ")
        if int(step) < self.root:
            return Reply(f"looked up {self.asked}")
        if int(step) == self.root:
            self.decided += 1
            return Reply("deny" if self.decided % 6 == 1 else "refund")
        return Reply(before.split()[-1])

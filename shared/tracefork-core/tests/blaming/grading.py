"""A scripted model that grades."""

from __future__ import annotations

import json

from tracefork_testkit import Fault, ModelRequest, Reply


class Bench:
    """A model that passes outcomes with "refund", and keeps the requests it got.

    Attributes:
        seen: the requests.
        says: answers to give instead, the last one first.
        faults: number of 503 responses before the next answer.
    """

    def __init__(self) -> None:
        self.seen: list[ModelRequest] = []
        self.says: list[str] = []
        self.faults = 0

    def __call__(self, request: ModelRequest) -> Reply | Fault:
        self.seen.append(request)
        if self.faults:
            self.faults -= 1
            return Fault(status=503)
        passed = "refund" in request.last_user_text
        verdict = json.dumps({"verdict": "PASS" if passed else "FAIL"})
        return Reply(self.says.pop() if self.says else verdict)

"""An imported tape answers real clients, and compares what its file has."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from tracefork_core import fork, replay
from tracefork_core.errors import DivergenceError, ReplayError
from tracefork_core.interop.importing.recognise import import_file
from tracefork_core.run.replay import Replaying
from tracefork_testkit import ProviderServer

ASKED = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "Hello?"}]}
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "gpt-5-mini-2025-08-07",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Hello from 2025."},
        }
    ],
}
URL = "https://api.openai.com/v1/chat/completions"


def interaction(
    body: str, headers: dict[str, Any] | None = None, answer: Any = ANSWER, url: str = URL
) -> dict[str, Any]:
    """Return a call as a cassette has it."""
    sized = {"content-length": [str(len(body.encode()))]}
    return {
        "request": {
            "method": "POST",
            "uri": url,
            "body": body,
            "headers": {"content-type": ["application/json"]} | sized
            if headers is None
            else headers,
        },
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": {"content-type": ["application/json"]},
            "body": {"string": json.dumps(answer)},
        },
    }


def imported(folder: Path, *interactions: dict[str, Any]) -> Path:
    """Import a cassette with these calls."""
    old = folder / "old.json"
    old.write_text(json.dumps({"interactions": interactions}))
    import_file(old, folder / "new.tape")
    return folder / "new.tape"


def post(tape: Path, bodies: Sequence[str], url: str = URL, **headers: str) -> Replaying:
    """Send requests during a replay; each must be answered as the cassette says."""
    with replay(tape) as run, httpx2.Client(verify=False) as http:
        for body in bodies:
            all_headers = {"content-type": "application/json", **headers}
            response = http.post(url, content=body, headers=all_headers)
            assert response.json() == ANSWER
    return run


def test_the_sdk_of_a_provider_is_answered(tmp_path: Path) -> None:
    """It sends the same bytes as when the cassette was recorded, and more headers than it has."""
    body = json.dumps(ASKED, separators=(",", ":"))
    tape = imported(tmp_path, interaction(body))
    with replay(tape) as run, openai.OpenAI(api_key="none") as client:
        answer = client.chat.completions.create(**ASKED)
    assert answer.choices[0].message.content == "Hello from 2025."
    assert run.sockets == 0
    assert run.not_proven == ["the order of requests", "request headers"]


def test_headers_that_the_file_lacks_are_not_compared(tmp_path: Path) -> None:
    """Those that it has are."""
    body = json.dumps(ASKED)
    tape = imported(tmp_path, interaction(body))
    post(tape, [body], **{"openai-beta": "assistants=v2"})
    with pytest.raises(DivergenceError) as diverged:
        post(tape, [body], **{"content-type": "text/plain", "openai-beta": "assistants=v2"})
    assert diverged.value.divergence.pointer == "headers/content-type"


def test_a_body_of_proven_length_is_compared_by_its_bytes(tmp_path: Path) -> None:
    """Another spelling of the same JSON is another body."""
    tape = imported(tmp_path, interaction(json.dumps(ASKED)))
    with pytest.raises(DivergenceError):
        post(tape, [json.dumps(ASKED, indent=1)])


def test_a_body_without_a_length_is_compared_by_its_values(tmp_path: Path) -> None:
    """Another spelling is no difference, and another value is one."""
    tape = imported(tmp_path, interaction(json.dumps(ASKED), headers={}))
    run = post(tape, [json.dumps(ASKED, indent=1)])
    assert run.not_proven[2:] == ["the bytes of 1 request"]
    with pytest.raises(DivergenceError) as diverged:
        post(tape, [json.dumps(ASKED | {"model": "gpt-5"})])
    assert diverged.value.divergence.pointer == "/model"


def test_a_body_that_was_changed_is_not_compared(tmp_path: Path) -> None:
    """But the URL is."""
    changed = interaction('{"model": "REDACTED"}', headers={"content-length": ["99"]})
    tape = imported(tmp_path, changed)
    run = post(tape, [json.dumps(ASKED)])
    assert run.not_proven[2:] == ["the body of 1 request"]
    with pytest.raises(DivergenceError):
        post(tape, [json.dumps(ASKED)], url="https://api.openai.com/v1/responses")


def test_a_key_in_the_query_that_a_filter_removed_is_no_difference(tmp_path: Path) -> None:
    """Another parameter is one."""
    body = json.dumps(ASKED)
    tape = imported(tmp_path, interaction(body, url=f"{URL}?alt=sse"))
    post(tape, [body], url=f"{URL}?alt=sse&key=secret")
    with pytest.raises(DivergenceError):
        post(tape, [body], url=f"{URL}?alt=json&key=secret")


def test_concurrent_requests_are_answered_in_any_order(tmp_path: Path) -> None:
    """A cassette is in the order in which answers ended, and knows no tasks."""
    bodies = [json.dumps({"n": n}) for n in range(4)]
    calls = [interaction(body, answer={"body": body}) for body in bodies]
    tape = imported(tmp_path, calls[2], calls[0], calls[1], calls[3])

    async def ask(http: httpx2.AsyncClient, body: str) -> Any:
        response = await http.post(URL, content=body, headers={"content-type": "application/json"})
        return response.json()["body"]

    async def run() -> list[Any]:
        async with httpx2.AsyncClient(verify=False) as http:
            together = await asyncio.gather(*(ask(http, body) for body in bodies[:3]))
            return [*together, await ask(http, bodies[3])]

    with replay(tape) as replayed:
        assert asyncio.run(run()) == bodies
    assert replayed.exchanges == 4
    assert replayed.moved == []


def test_a_fork_is_live_from_its_point_on(tmp_path: Path) -> None:
    """What comes before is answered from the import, and the branch replays."""
    with ProviderServer() as provider:
        url = f"{provider.url}/v1/chat/completions"
        first, second = json.dumps(ASKED), json.dumps(ASKED | {"seed": 1})
        tape = imported(tmp_path, *(interaction(body, url=url) for body in (first, second)))
        headers = {"content-type": "application/json"}
        branch = tmp_path / "branch.tape"
        with fork(tape, 1, writes="allow", to=branch), httpx2.Client(verify=False) as http:
            before = http.post(url, content=first, headers=headers).json()
            after = http.post(url, content=second, headers=headers).json()
        assert len(provider.requests) == 1
    assert before == ANSWER
    assert after != ANSWER
    with replay(branch) as run, httpx2.Client(verify=False) as http:
        for body, answer in ((first, before), (second, after)):
            assert http.post(url, content=body, headers=headers).json() == answer
    assert run.exchanges == 2


def test_the_strictest_match_answers(tmp_path: Path) -> None:
    """An exchange whose body is compared is not answered by one whose body is not."""
    other = ANSWER | {"id": "chatcmpl-2"}
    unknown = interaction("{}", headers={"content-length": ["99"]}, answer=other)
    body = json.dumps(ASKED)
    tape = imported(tmp_path, unknown, interaction(body))
    with pytest.raises(DivergenceError) as diverged:
        post(tape, [body])
    assert diverged.value.divergence.n == 0


def test_a_tape_without_each_response_does_not_replay(tmp_path: Path) -> None:
    """The error names the format and the grade."""
    without = interaction(json.dumps(ASKED))
    without["response"]["body"] = None
    tape = imported(tmp_path, without)
    with pytest.raises(ReplayError, match=r"VCR cassette.*structure"):
        post(tape, [json.dumps(ASKED)])

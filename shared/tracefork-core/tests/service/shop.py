"""A FastAPI app whose routes ask a model, and then do what the request says."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

from fastapi import BackgroundTasks, FastAPI, HTTPException, Request, WebSocket
from fastapi.responses import StreamingResponse

from tracefork_core import Recorder

from ..run.asking import aask, ask


def shop(url: str, recorder: Recorder) -> FastAPI:
    """Return the app; `then` is what a route does after it has asked the model."""
    app = FastAPI()
    app.add_middleware(recorder.asgi)

    def end(then: str) -> None:
        if then == "raise":
            raise LookupError("no such order")
        if then == "mark":
            recorder.current().mark("thumbs-down")
        if then.isdigit():
            raise HTTPException(int(then))

    @app.post("/chat/{customer}")
    async def chat(customer: str, request: Request, then: str = "") -> dict[str, Any]:
        body = await request.json()
        answers = [await aask(url, text) for text in body["texts"]]
        end(then)
        return {"customer": customer, "answers": answers, "then": os.environ.get("SHOP", "")}

    @app.post("/sync/{customer}")
    def sync(customer: str, body: dict[str, list[str]], then: str = "") -> dict[str, Any]:
        answers = [ask(url, text) for text in body["texts"]]
        end(then)
        return {"customer": customer, "answers": answers}

    @app.get("/stream")
    async def stream(text: str, then: str = "") -> StreamingResponse:
        async def steps() -> AsyncIterator[str]:
            yield f"data: {await aask(url, text)}\n\n"
            end(then)
            yield f"data: {await aask(url, 'again')}\n\n"

        return StreamingResponse(steps(), media_type="text/event-stream")

    @app.get("/plain-stream")
    def plain_stream(text: str, then: str = "") -> StreamingResponse:
        def steps() -> Iterator[str]:
            yield ask(url, text)
            end(then)
            yield ask(url, "again")

        return StreamingResponse(steps())

    @app.get("/background")
    async def background(text: str, tasks: BackgroundTasks, then: str = "") -> str:
        async def work() -> None:
            await aask(url, text)
            await aask(url, "again")
            end(then)

        tasks.add_task(work)
        return text

    @app.websocket("/talk")
    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text(await aask(url, await socket.receive_text()))
        await socket.close()
        raise LookupError

    return app

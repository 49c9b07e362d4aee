"""The service that `service` measures: `uvicorn service_app:app`. Settings are in the environment.

RECORDER is "none", "failed" or "all"; TAPES is the folder of its tapes, PROVIDER the model's URL.
"""

from __future__ import annotations

import os

import openai
from fastapi import FastAPI

from tracefork_core import Recorder

app = FastAPI()
if (keep := os.environ["RECORDER"]) != "none":
    recorder = Recorder(os.environ["TAPES"], keep=keep, max_tapes=1000)  # type: ignore[arg-type]
    app.add_middleware(recorder.asgi)
client = openai.AsyncOpenAI(base_url=os.environ["PROVIDER"] + "/v1", api_key="none")


@app.get("/ask/{seconds}/{number}")
async def ask(seconds: str, number: int) -> str | None:
    """Ask a model that takes so many seconds."""
    question = f"@slow {seconds}\n@say Order {number} left the warehouse."
    reply = await client.chat.completions.create(
        model="gpt-5-mini", messages=[{"role": "user", "content": question}]
    )
    text: str | None = reply.choices[0].message.content
    return text

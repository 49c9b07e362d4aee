"""A FastAPI service whose route calls a model.

`uvicorn app:app` serves it. `python app.py` sends one request to it in this process, and
`tracefork record app.py` records that.
"""

import openai
from fastapi import FastAPI
from fastapi.testclient import TestClient

app = FastAPI()


@app.get("/answer")
async def answer(question: str) -> dict[str, str]:
    """Answer a question."""
    messages = [{"role": "user", "content": question}]
    client = openai.AsyncOpenAI()
    reply = await client.chat.completions.create(model="gpt-5-mini", messages=messages)
    return {"answer": reply.choices[0].message.content or ""}


if __name__ == "__main__":
    with TestClient(app) as client:
        print(client.get("/answer", params={"question": "Where is order 17?"}).json()["answer"])

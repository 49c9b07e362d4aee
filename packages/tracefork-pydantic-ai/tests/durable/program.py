"""Run an agent in a workflow of DBOS or a flow of Prefect, recorded or replayed.

    python program.py dbos|prefect record|replay TAPE DATABASE whole|attached

`attached` leaves everything but the agent off the tape: what the engine draws and asks is live. It
prints what the tool prints and the messages of the run.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import traceback
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel

import tracefork_core as tracefork
from tracefork_pydantic_ai import attach

ENGINE, MODE, TAPE, DATABASE, COVERS = sys.argv[1:]
QUESTION = '@call weather {"city": "Rome"}\n@then\n@say It is sunny.'


async def weather(city: str) -> str:
    """Return the weather of a city."""
    print("the tool ran")
    return f"sunny in {city}"


def agent_of(durability: Any) -> Any:
    model = OpenAIChatModel("gpt-5-mini")
    return Agent(model, name="helper", tools=[weather], capabilities=[durability])


def with_dbos() -> Any:
    from dbos import DBOS
    from pydantic_ai.durable_exec.dbos import DBOSDurability
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    own = sqlite3.connect(":memory:", check_same_thread=False)

    @event.listens_for(Engine, "connect")
    def with_time(connection: Any, _: object) -> None:
        """DBOS needs `unixepoch('subsec')`, of SQLite 3.42."""
        now = "SELECT (julianday('now') - 2440587.5) * 86400.0"
        connection.create_function("unixepoch", 1, lambda _: own.execute(now).fetchone()[0])

    url = f"sqlite:///{DATABASE}"
    DBOS(config={"name": "helper", "system_database_url": url, "run_admin_server": False})
    agent = agent_of(DBOSDurability())

    @DBOS.workflow()
    async def answer() -> str:
        return str((await agent.run(QUESTION)).all_messages_json().decode())

    DBOS.launch()
    return agent, answer


def with_prefect() -> Any:
    os.environ.update(
        PREFECT_HOME=DATABASE,
        PREFECT_SERVER_ALLOW_EPHEMERAL_MODE="true",
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
        PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="200",
    )
    from prefect import flow
    from pydantic_ai.durable_exec.prefect import PrefectDurability

    agent = agent_of(PrefectDurability())

    @flow
    async def answer() -> str:
        return str((await agent.run(QUESTION)).all_messages_json().decode())

    return agent, answer


agent, answer = with_dbos() if ENGINE == "dbos" else with_prefect()
options: dict[str, Any] = {}
if COVERS == "attached":
    attach(agent)
    options = {"ambient": False, "clock": False, "entropy": False}
status = 1
try:
    if MODE == "record":
        with tracefork.record(TAPE, **options):
            print(asyncio.run(answer()))
    else:
        # Prefect's own server is on this machine.
        allow = ["127.0.0.1"] if ENGINE == "prefect" else []
        with tracefork.replay(TAPE, strict=True, allow=allow, **options) as replayed:
            print(asyncio.run(answer()))
        assert replayed.digest == replayed.tape.digest
    status = 0
except Exception:
    traceback.print_exc()
if ENGINE == "prefect":
    sys.exit(status)  # It stops its server.
sys.stdout.flush()
os._exit(status)  # The threads of DBOS would keep the process after an error.

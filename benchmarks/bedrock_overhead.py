"""Measure what recording adds to a call of boto3's Converse, beside one commit."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from bench import Bench, Samples
from record_overhead import LEAST, rows_of, timed
from recorders import CORE, PLAIN, Recorder
from table import Measurement, Row
from words import words

OWN_CPU_TARGET = 300e-6
_SIZE = 1_000
TITLE = "What recording adds to a call of Amazon Bedrock"
CASES = tuple(f"Converse, 1 KB, {what}" for what in ("wall time", "CPU"))


def measure(bench: Bench) -> Measurement:
    """Measure calls of 1 KB each way, each with a different text."""
    url = bench.provider()
    calls = 10 if bench.quick else 40

    def one(who: str) -> Samples:
        task, worker = (call_and_commit, PLAIN) if who == LEAST else (call, who)
        return bench.ask(worker, task, url=url, calls=calls, path=bench.path())

    rounds = bench.rounds(3 if bench.quick else 9, [PLAIN, LEAST, CORE], one)
    rows: list[Row] = []
    for case, kind in zip(CASES, ("wall", "cpu"), strict=True):
        rows.extend(rows_of(case, kind, rounds, OWN_CPU_TARGET))
    return Measurement(
        TITLE,
        "The plain client is boto3 with keys, which signs each request. `+` is the difference to "
        "it, median over the rounds, and one commit is that of the table above.",
        rows,
    )


def call(recorder: Recorder, url: str, calls: int, path: str) -> Samples:
    """Record calls on one warm connection; return wall time and CPU time of each, in seconds."""
    with recorder.record(Path(path)):
        client = _client(url)
        samples = timed(lambda asked: client.converse(**asked), _asked(calls, path))
        client.close()
        began = time.perf_counter()
    return {**samples, "save": [(time.perf_counter() - began) / calls]}


def call_and_commit(recorder: Recorder, url: str, calls: int, path: str) -> Samples:
    """Make the same calls, each followed by a durable commit of both bodies' packed size."""
    with (
        recorder.record(Path(path)),
        closing(sqlite3.connect(path, isolation_level=None)) as db,
    ):
        client = _client(url)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE blobs (id INTEGER PRIMARY KEY, data BLOB)")

        def once(asked: dict[str, Any]) -> None:
            client.converse(**asked)
            db.execute("INSERT INTO blobs (data) VALUES (?)", (str(asked).encode(),))

        samples = timed(once, _asked(calls, path))
        client.close()
        return samples


def _client(url: str) -> Any:
    import boto3

    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=url,
        aws_access_key_id="AKIAOFTHEBENCHMARKS",
        aws_secret_access_key="not a secret",
    )


def _asked(calls: int, path: str) -> list[dict[str, Any]]:
    """Return what is asked in each call, and once before to open the connection."""
    texts = [f"@say {words(_SIZE, (path, i))}" for i in range(calls + 1)]
    turns = [[{"role": "user", "content": [{"text": text}]}] for text in texts]
    return [{"modelId": "a.model-v1:0", "messages": messages} for messages in turns]

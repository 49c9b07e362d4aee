"""A real Celery worker keeps the tapes of its failed tasks, which run again in the app."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tracefork_core import Tape
from tracefork_testkit import ProviderServer

from ..run.asking import asked_on
from .serving import kept

TASKS = """
import os
from pathlib import Path

import httpx2
from celery import Celery

from tracefork_core import Recorder

queue = Path(os.environ["QUEUE"])
queue.mkdir(exist_ok=True)
app = Celery("tasks", broker="filesystem://")
app.conf.broker_transport_options = {
    name: str(queue) for name in ("data_folder_in", "data_folder_out", "control_folder")
}
app.conf.task_store_eager_result = False
Recorder(os.environ["TAPES"]).celery(app)


def ask(text):
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": f"@say {text}"}]}
    answer = httpx2.post(os.environ["PROVIDER"] + "/v1/chat/completions", json=body, verify=False)
    return answer.json()["choices"][0]["message"]["content"]


@app.task
def work(text, *, fails=False):
    answer = ask(text)
    if fails:
        raise LookupError(answer)
    return answer


@app.task(bind=True, max_retries=1)
def again(self, text):
    ask(text)
    if not self.request.retries:
        raise self.retry(exc=LookupError(text), countdown=0)
"""


SEND = """
from tasks import again, work

for n in range(4):
    work.delay(f"fine {n}")
for n in range(2):
    work.delay(f"bad {n}", fails=True)
again.delay("once more")
"""


@contextmanager
def working(folder: Path, environment: dict[str, str], pool: str) -> Iterator[None]:
    """Run a worker whose queue holds seven tasks."""
    subprocess.run([sys.executable, "-c", SEND], cwd=folder, env=environment, check=True)
    words = ["-A", "tasks", "worker", "-P", pool, "-c", "2", "-l", "critical"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", *words, *quiet],
        cwd=folder,
        env=environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


@pytest.mark.parametrize("pool", ["prefork", "solo"])
def test_a_worker_keeps_the_tapes_of_failed_tasks(
    tmp_path: Path, provider: ProviderServer, pool: str
) -> None:
    """Of six tasks two fail, and of the one that is retried the first attempt."""
    (tmp_path / "tasks.py").write_text(TASKS)
    tapes = tmp_path / "tapes"
    own = {"QUEUE": str(tmp_path / "queue"), "TAPES": str(tapes), "PROVIDER": provider.url}
    environment = {**os.environ, **own}
    until = time.monotonic() + 60
    with working(tmp_path, environment, pool):
        while len(provider.requests) < 8 and time.monotonic() < until:
            time.sleep(0.05)
        paths = {asked_on(path)[0]: path for path in kept(tapes, 3)}
    assert sorted(paths) == ["bad 0", "bad 1", "once more"]
    with Tape.open(paths["bad 1"]) as tape:
        served = tape.served
        assert served is not None
        assert served.arguments is not None
        assert (served.kind, served.name, served.outcome) == ("task", "tasks.work", "LookupError")
        assert (served.arguments.positional, served.arguments.named) == (["bad 1"], {"fails": True})
        assert paths["bad 1"].stem.endswith(f"-tasks-work_{served.id}")
    asked = len(provider.requests)
    words = ["-m", "tracefork_core.cli.main", "replay", str(paths["bad 1"]), "--app", "tasks:app"]
    again = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert "LookupError, as it did in the recording" in again.stderr
    assert len(provider.requests) == asked

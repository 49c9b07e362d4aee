"""A home with storages of CrewAI in it, and a provider that fills in the forms of memories."""

from __future__ import annotations

import gc
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tracefork_testkit import ModelRequest, ProviderServer, Reply

FORM = {
    "memories": ["The customer likes blue."],
    "suggested_scope": "/shop",
    "categories": ["x"],
    "importance": 0.5,
    "insert_new": True,
}
_EMPTY = {"array": [], "string": "x", "number": 0.5, "integer": 1, "boolean": False}


class Clerk:
    """Fills in forms, and answers orders: one after the other, each answer at a tenth is bad."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, request: ModelRequest) -> Reply:
        """Answer one request."""
        form: Any = request.payload.get("response_format")
        if form is not None:
            fields = form["json_schema"]["schema"]["properties"]
            filled = {
                name: FORM.get(name, _EMPTY.get(it.get("type"))) for name, it in fields.items()
            }
            return Reply(json.dumps(filled))
        prompt = request.last_user_text
        if "Current Task: Take order" not in prompt:
            return Reply("Nothing.")
        self.prompts.append(prompt)
        return Reply("It is bad." if len(self.prompts) % 10 == 2 else "It is good.")


@pytest.fixture
def clerk() -> Clerk:
    """The model."""
    return Clerk()


@pytest.fixture
def server(clerk: Clerk) -> Iterator[ProviderServer]:
    """The provider of the model."""
    with ProviderServer(clerk) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the test runs in, which holds what CrewAI stores."""
    from crewai.rag.chromadb import config

    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(home / "storage"))
    monkeypatch.setattr(config, "DEFAULT_STORAGE_PATH", str(home / "storage"))
    return home


@pytest.fixture
def stored(home: Path) -> Callable[[], dict[str, str]]:
    """Hash each file below the home, once LanceDB compacts none of them in the background."""

    def read() -> dict[str, str]:
        for thread in threading.enumerate():
            if thread.name == "lancedb-compact":
                thread.join()
        gc.collect()  # Early versions of CrewAI leave closing their databases to it.
        return {
            str(path.relative_to(home)): _hash(path) if path.is_file() else "a folder"
            for path in sorted(home.rglob("*"))
        }

    return read


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

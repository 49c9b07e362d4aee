"""Run the example claims_desk in a copy of its folder, with a fault planted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

EXAMPLE = Path(__file__).parents[3] / "examples" / "claims_desk"
READS = ("orders/find_order", "orders/read_text_file", "secure-filesystem-server/read_text_file")
FAULTS = {
    "handoff": ("Triage", "turn 1", "gpt-5-mini"),
    "mcp": ("Shipping", "turn 2", "find_order", "orders.find_order"),
    "instruction": ("Refunds", "turn 4", "gpt-5-mini"),
    "tool": ("Billing", "turn 6", "charged"),
}
"""Where each fault shows: the agent, its turn and the step in it."""


@dataclass
class Claims:
    """The example in a folder of its own."""

    folder: Path
    desk: ModuleType

    def record(self, fault: str, **options: Any) -> Path:
        """Record a run with a fault that was just planted."""
        os.environ["FAULT"] = fault
        tape = self.folder / f"{fault}.tape"
        (self.folder / f".chances-{fault}").unlink(missing_ok=True)
        with tracefork.record(tape, overwrite=True, **options):
            self.desk.run()
        return tape


@contextmanager
def claims(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Claims]:
    """Copy the example, install its server for Node.js if that is here, and start its model."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    patch.chdir(folder)
    patch.syspath_prepend(folder)
    if shutil.which("npm") and "CLAIMS_PYTHON_ONLY" not in os.environ:
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefer-offline"]
        done = subprocess.run(install, check=False, timeout=120)
        print(f"npm install ended with {done.returncode}")
    for name, value in {"FAULT": "", "ORDERS_KEY": "none", "OPENAI_API_KEY": "none"}.items():
        patch.setenv(name, value)
    try:
        with ProviderServer(import_module("provider").model) as server:
            patch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
            yield Claims(folder, import_module("desk"))
    finally:
        for name in ("desk", "faults", "provider"):
            sys.modules.pop(name, None)

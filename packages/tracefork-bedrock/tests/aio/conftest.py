"""Skip these tests where aiobotocore is not installed: it pins one version of botocore."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

collect_ignore_glob = [] if find_spec("aiobotocore") else ["test_*.py"]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if not find_spec("aiobotocore") and collection_path.name != "conftest.py" else None

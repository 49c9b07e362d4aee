"""Fixtures of all tests, of core, the test-kit, the adapters and the repository."""

from __future__ import annotations

import gc
import os
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest
from house.bytecode import give, take

LIBRARIES = Path(sysconfig.get_path("purelib"))
# CI says it for all of its environments. A process that a test starts has no variables of pytest's.
SHARED_BYTECODE = os.environ.get("PYTEST_SHARED_BYTECODE")
if SHARED_BYTECODE:
    take(Path(SHARED_BYTECODE), LIBRARIES)
gc.disable()  # Until the tests begin: nothing that is imported and collected before is garbage.


def pytest_collection_finish() -> None:
    """Leave libraries and tests out of garbage collections, which take a tenth of the time."""
    gc.freeze()
    gc.enable()
    if SHARED_BYTECODE:
        give(Path(SHARED_BYTECODE), LIBRARIES)


def pytest_unconfigure() -> None:
    """Share what the tests have compiled too."""
    if SHARED_BYTECODE:
        give(Path(SHARED_BYTECODE), LIBRARIES)


@pytest.fixture(autouse=True, scope="session")
def one_root_certificate(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give clients one root, here and in child processes: to load all takes 30 ms for each client.

    No test asks a host that any other root has signed, except those of tests/house, which install
    from a package index. An environment without trustme is only slower.
    """
    if find_spec("trustme"):
        import trustme

        file = tmp_path_factory.mktemp("root") / "root.pem"
        trustme.CA().cert_pem.write_to_path(file)
        os.environ["SSL_CERT_FILE"] = str(file)

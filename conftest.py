"""Fixtures of all tests, of core, the test-kit, the adapters and the repository."""

from __future__ import annotations

import gc
import os
from importlib.util import find_spec

import pytest

gc.disable()  # Until the tests begin: nothing that is imported and collected before is garbage.


def pytest_collection_finish() -> None:
    """Leave libraries and tests out of garbage collections, which take a tenth of the time."""
    gc.freeze()
    gc.enable()


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

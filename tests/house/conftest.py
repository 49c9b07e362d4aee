"""Each package of this repository, and what a release of it would upload."""

from __future__ import annotations

import shutil

import pytest
from house.repository import Built, packages, run


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `package` once for each of them."""
    if "package" in metafunc.fixturenames:
        every = packages()
        metafunc.parametrize("package", every, ids=[package.name for package in every])


@pytest.fixture(autouse=True, scope="session")
def one_root_certificate() -> None:
    """Trust what this machine trusts: these tests install from a package index."""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    """Build the sdist of each package from a clean copy, and the wheel from that sdist."""
    found = {}
    for package in packages():
        folder = tmp_path_factory.mktemp(package.name)
        leave_out = shutil.ignore_patterns(".*", "__pycache__", "dist", "build")
        shutil.copytree(package.folder, folder / "source", ignore=leave_out)
        run("uv", "build", "--quiet", "--out-dir", folder / "dist", folder / "source")
        (wheel,) = (folder / "dist").glob("*.whl")
        (sdist,) = (folder / "dist").glob("*.tar.gz")
        found[package.name] = Built(wheel, sdist)
    return found

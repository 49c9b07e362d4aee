"""What a release of each package uploads, and what a stranger's empty environment gets from it."""

from __future__ import annotations

import email
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from house.repository import ASKS, ROOT, Built, Package, run, run_python

from tracefork_testkit import ProviderServer


def test_a_wheel_holds_the_module_its_types_and_its_licence(
    package: Package, built: dict[str, Built]
) -> None:
    """A wheel holds the module, py.typed and the licence of the repository, and nothing else."""
    with zipfile.ZipFile(built[package.name].wheel) as wheel:
        names = set(wheel.namelist())
        (licence,) = (name for name in names if name.endswith("licenses/LICENSE"))
        assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
    assert f"{package.module}/py.typed" in names
    assert {name.split("/")[0].partition("-")[0] for name in names} == {package.module}
    assert not [name for name in names if "/test_" in name or "/tests/" in name]


def test_a_wheel_holds_every_source_file(package: Package, built: dict[str, Built]) -> None:
    """A wheel holds exactly the files that lie under src, data files too."""
    with zipfile.ZipFile(built[package.name].wheel) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    source = package.source.parent
    lying = {
        path.relative_to(source).as_posix()
        for path in package.source.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert packed == lying


def test_the_core_wheel_carries_the_guard_of_child_processes(built: dict[str, Built]) -> None:
    """The folder that child processes find first on their path is in the wheel."""
    with zipfile.ZipFile(built["tracefork-core"].wheel) as wheel:
        assert "tracefork_core/children/boot/sitecustomize.py" in wheel.namelist()


def test_an_sdist_holds_what_it_is_built_from(package: Package, built: dict[str, Built]) -> None:
    """An sdist holds the sources, the README, the changelog and the licence."""
    with tarfile.open(built[package.name].sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"} <= names
    assert f"src/{package.module}/__init__.py" in names


def test_the_metadata_is_what_an_index_accepts(built: dict[str, Built]) -> None:
    """`twine check --strict` finds nothing to say about any file of a release."""
    files = [path for files in built.values() for path in (files.wheel, files.sdist)]
    assert run("twine", "check", "--strict", *files).count("PASSED") == len(files)


def test_the_metadata_names_licence_and_pythons(package: Package, built: dict[str, Built]) -> None:
    """The metadata says MIT and Python 3.11; its version is the one the changelog opens with."""
    with zipfile.ZipFile(built[package.name].wheel) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
        metadata = email.message_from_bytes(wheel.read(name))
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"].split(",")[-1] == ">=3.11"
    assert f"## {metadata['Version']}" in (package.folder / "CHANGELOG.md").read_text()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, built: dict[str, Built]) -> Path:
    """An environment with nothing in it but the wheels and what they ask for."""
    folder = tmp_path_factory.mktemp("empty")
    run("uv", "venv", "--quiet", "--python", sys.executable, folder)
    python = folder / "bin" / "python"
    whole = [files.wheel for name, files in built.items() if name not in ASKS]
    run("uv", "pip", "install", "--quiet", "--python", python, *whole)
    alone = [built[name].wheel for name in ASKS]
    run("uv", "pip", "install", "--quiet", "--no-deps", "--python", python, *alone)
    return python


def test_the_built_wheels_import(package: Package, empty: Path) -> None:
    """Each package imports from its wheel and knows the version of its metadata."""
    code = (
        f"import {package.module} as it; from importlib.metadata import version; "
        f"assert it.__version__ == version({package.name!r}); print(it.__file__)"
    )
    assert str(empty.parent.parent) in run_python(code, empty)


AGENT = """\
import sys, httpx2
for word in ("one", "two"):
    print(httpx2.post(f"{sys.argv[1]}/echo", content=word.encode()).text)
"""


@dataclass(frozen=True)
class Stranger:
    """Somebody who has the wheels alone: a home with nothing in it, and no folder of this one."""

    python: Path
    home: Path

    def tracefork(self, *words: str | Path, ends: int = 0) -> str:
        """Return what a command says, on both streams; it has to end with this exit code."""
        done = subprocess.run(
            [self.python.with_name("tracefork"), *words],
            cwd="/",
            env={"HOME": str(self.home), "PATH": os.defpath},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == ends, done.stdout
        assert str(ROOT) not in done.stdout
        return done.stdout


@pytest.fixture
def stranger(empty: Path, tmp_path: Path) -> Stranger:
    return Stranger(empty, tmp_path)


def test_the_wheels_record_replay_and_blame(stranger: Stranger) -> None:
    """Somebody without the repository records a run, has it proven and blamed, and blame held."""
    agent, tape = stranger.home / "agent.py", stranger.home / "run.tape"
    agent.write_text(AGENT)
    with ProviderServer() as provider:
        stranger.tracefork("record", "-o", tape, agent, "--", provider.url)
        words = ("--oracle=regex:three", "--budget=2 calls", "--yes", "--allow-writes")
        said = stranger.tracefork("blame", tape, *words, ends=1)
    assert "the budget ran out" in said
    assert "✓ replayed 2 of 2 exchanges bit-exact" in stranger.tracefork("replay", tape)
    assert "✓ first suspect right" in stranger.tracefork(
        "bench", "--cases=echo", "--seeds=1", "--sizes=8"
    )


def test_doctor_tells_which_frameworks_are_there(stranger: Stranger) -> None:
    """A framework that is there is said to be, one that is not with what to type."""
    found = json.loads(stranger.tracefork("doctor", "--json"))["adapters"]
    langgraph, crewai = (
        next(adapter for adapter in found if adapter["name"] == name)
        for name in ("langgraph", "crewai")
    )
    assert (langgraph["supported"], langgraph["problem"]) == (True, None)
    assert crewai["problem"] == "crewai is not installed"
    assert crewai["remedy"].startswith("pip install 'crewai<")


@pytest.mark.parametrize(
    ("command", "extra"),
    [("demo", "tracefork-langgraph[demo]"), ("validate", "tracefork-testkit[validation]")],
)
def test_what_needs_more_says_what_to_install(stranger: Stranger, command: str, extra: str) -> None:
    """A command whose extra is not installed ends before it begins, and names it."""
    assert f"pip install '{extra}'" in stranger.tracefork(command, ends=2)


@pytest.mark.parametrize("name", ASKS)
def test_an_adapter_of_much_asks_for_that_alone(name: str, built: dict[str, Built]) -> None:
    """Beside its framework and core it asks for nothing, but for its tests."""
    with zipfile.ZipFile(built[name].wheel) as wheel:
        (path,) = (one for one in wheel.namelist() if one.endswith("/METADATA"))
        metadata = email.message_from_bytes(wheel.read(path))
    asked = [one for one in metadata.get_all("Requires-Dist", []) if "extra ==" not in one]
    assert sorted(re.split(r"[<>=]", one)[0] for one in asked) == ASKS[name]

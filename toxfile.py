"""Choose the newest Python that runs, and the folder or the wheel of each package, for tox.ini.

tox.ini says `{env:NEWEST_PYTHON}` and `{env:SOURCE_OF_CORE}`.

Neither tox nor uv tries the interpreters it finds. pyenv puts a `python3.13` on PATH for every
version it has installed, and most of them only print an error: an environment that asks for 3.13
is then skipped, although 3.11 would do. So each is started once, before tox reads its settings.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent
SUPPORTED = ("3.13", "3.12", "3.11")
"""What the packages are tested on, newest first."""


def runs(version: str) -> bool:
    """Return whether `python3.x` starts and is that version."""
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run(  # noqa: S603 - the names are those above
            [f"python{version}", "-c", question],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.strip() == version


def newest() -> str:
    """Return the newest supported version that runs: on PATH, or the one that runs tox."""
    own = "{}.{}".format(*sys.version_info[:2])
    for version in SUPPORTED:
        if version == own or runs(version):
            return version
    raise SystemExit(
        f"No supported Python found: the tests need one of {', '.join(SUPPORTED)}, and tox runs on "
        f"{own}. Install one, or create the environment with it: python3.11 -m venv .venv"
    )


def sources(wheels: str | None) -> dict[str, str]:
    """Return where each package is installed from: a wheel in this folder, or else its own folder.

    uv builds a folder again for each environment, which takes half a second for each package.
    """
    found = {}
    for project in sorted(ROOT.glob("*/tracefork-*/pyproject.toml")):
        folder = project.parent
        source = folder
        if wheels:
            (source,) = Path(wheels).glob(f"{folder.name.replace('-', '_')}-*.whl")
        name = folder.name.removeprefix("tracefork-").replace("-", "_")
        found[f"SOURCE_OF_{name.upper()}"] = str(source)
    return found


os.environ.setdefault("NEWEST_PYTHON", newest())
os.environ.update(sources(os.environ.get("TRACEFORK_WHEELS")))

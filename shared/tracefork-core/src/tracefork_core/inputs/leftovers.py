"""Free the name of a temporary file that the recording left behind, while a replay runs.

`tempfile` draws the recorded names in a replay. If such a file still exists, it draws the next
name, and a request with the name in it diverges. So the file is renamed (`NAME.tracefork-PID`, in
its folder) right before `tempfile` makes its own, and gets its name back when the session ends.

Only what is exactly as the recording left it is renamed: its content cannot be in use by anything
that this run does not know, and two replays at once cannot lose a file of the user to each other.
Nothing is overwritten or deleted except a copy with that same content. If the process is killed,
the file is still there under its other name.

Other ways failed on paper: another folder for temporary files is another path in the requests; to
write into the existing file destroys it; to give a private copy under the same name does not reach
the code that opens the name again, or the program that gets it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable


class Leftovers:
    """What one session has renamed.

    Args:
        is_as_left: returns whether a path is exactly as the recording left it.
        differences: gets a line for a name that cannot be freed.
    """

    def __init__(self, is_as_left: Callable[[str], bool], differences: list[str]) -> None:
        self._is_as_left = is_as_left
        self._differences = differences
        self._renamed: list[tuple[str, str]] = []

    def make_way(self, path: str) -> None:
        """Rename what is at a path that `tempfile` is about to make."""
        if not os.path.lexists(path):
            return
        aside = f"{path}.tracefork-{os.getpid()}"
        if self._is_as_left(path) and not os.path.lexists(aside):
            os.rename(path, aside)  # noqa: PTH104 - in a hook
            self._renamed.append((path, aside))
            return
        self._differences.append(
            f"{path} exists, and is not what the recording left there, so a temporary file or "
            "folder gets another name. To replay, delete it"
        )

    def put_back(self) -> None:
        """Give everything its name back, the last first."""
        while self._renamed:
            path, aside = self._renamed.pop()
            if os.path.lexists(path):
                if self._is_as_left(path):
                    _delete(path)
                else:
                    os.rename(path, _free(f"{path}.replayed"))  # noqa: PTH104 - text, as above
            os.rename(aside, path)  # noqa: PTH104 - text, as above


def _delete(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114 - text, as above
        shutil.rmtree(path)
    else:
        os.unlink(path)  # noqa: PTH108 - text, as above


def _free(path: str) -> str:
    name, number = path, 1
    while os.path.lexists(name):
        number += 1
        name = f"{path}-{number}"
    return name

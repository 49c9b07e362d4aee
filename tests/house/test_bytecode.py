from __future__ import annotations

import os
import py_compile
import shutil
from importlib.util import cache_from_source
from pathlib import Path

from house.bytecode import give, take


def test_a_library_is_compiled_once_for_environments_that_share_its_file(tmp_path: Path) -> None:
    """A file with the same text that is not the same file may be another version's."""
    one, other, copied = (tmp_path / name / "library" for name in ("one", "other", "copied"))
    for folder in (one, other, copied):
        folder.mkdir(parents=True)
    source = one / "module.py"
    source.write_text("x = 1")
    os.link(source, other / "module.py")
    shutil.copy2(source, copied / "module.py")
    py_compile.compile(str(source))
    shared = tmp_path / "shared"
    assert take(shared, other.parent) == 0
    assert [give(shared, one.parent), give(shared, one.parent)] == [1, 0]
    assert [take(shared, other.parent), take(shared, copied.parent)] == [1, 0]
    compiled = cache_from_source(str(other / "module.py"))
    assert Path(compiled).samefile(cache_from_source(str(source)))

"""Settings of the documentation site: `tox -e docs` builds it into .tox/docs/site.

The pages are plain Markdown that reads well without the site. Two things are added here: links that
leave docs/ lead to the repository, and the API reference is read from docstrings.
"""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

REPOSITORY = "https://github.com/tracefork/tracefork"

project = "tracefork"
author = "The tracefork authors"
copyright = "The tracefork authors, MIT licence"  # noqa: A001 - Sphinx's name for it
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "tracefork"
html_copy_source = False

myst_heading_anchors = 4
myst_links_external_new_tab = False
default_role = "code"  # docstrings mark names with single backticks, as Markdown does
nitpicky = False  # docstrings name types of other libraries
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True

_DOCS = Path(__file__).parent
_LINK = re.compile(r"(\]\()((?:\.\./)+[^)#\s]*)(#[^)\s]*)?(\))")


def _leave_for_the_repository(app: Sphinx, page: str, source: list[str]) -> None:
    """Point links to files outside docs/ at the repository. A link to nothing stays, and fails."""
    folder = (_DOCS / page).parent

    def absolute(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / link[2]))
        if target.is_relative_to(_DOCS) or not target.exists():
            return link[0]
        kind = "tree" if target.is_dir() else "blob"
        path = target.relative_to(_DOCS.parent)
        return f"{link[1]}{REPOSITORY}/{kind}/main/{path}{link[3] or ''}{link[4]}"

    source[0] = _LINK.sub(absolute, source[0])


def setup(app: Sphinx) -> None:
    """Register the hook."""
    app.connect("source-read", _leave_for_the_repository)

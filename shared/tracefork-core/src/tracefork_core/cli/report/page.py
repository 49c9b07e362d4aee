"""The page: one HTML file with its script, its style and its data. It loads nothing.

The policy in its head names the hashes of the script and of the style. So nothing that a tape holds
can run, even if a text of it became markup; and all texts are data in JSON whose `<` are escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib import resources

import msgspec

from tracefork_core.cli.report.document import Report
from tracefork_core.cli.report.packing import Parts

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{meta}<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="page"><p>This report needs JavaScript.</p></main>
"""


def pieces(report: Report, parts: Parts) -> Iterator[bytes]:
    """Yield the text of a page, piece by piece."""
    script, style = _built("page.js"), _built("page.css")
    policy = f"{_policy(script, style)}; base-uri 'none'; form-action 'none'"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    title = _escaped(f"{report.title} · tracefork")
    yield _HEAD.format(meta=meta, title=title, style=style).encode()
    yield b'<script type="application/json" id="report">'
    yield _data(report)
    yield b"</script>\n"
    for name, packed in parts:
        yield f'<script type="application/octet-stream" id="{name}">'.encode()
        yield packed
        yield b"</script>\n"
    yield f"<script>{script}</script>\n</body>\n</html>\n".encode()


def live_page(folder: str, *, allow_run: bool) -> tuple[bytes, str]:
    """Return the page that asks a server for its data, and the policy that goes with it.

    Args:
        folder: the name of the folder that the server shows.
        allow_run: whether the page may start commands.
    """
    script, style = _built("page.js"), _built("page.css")
    ours = "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    page = _HEAD.format(meta="", title=_escaped(f"{folder} · tracefork"), style=style)
    data = _data({"folder": folder, "allow_run": allow_run})
    page += f'<script type="application/json" id="view">{data.decode()}</script>\n'
    page += f"<script>{script}</script>\n</body>\n</html>\n"
    return page.encode(), f"{_policy(script, style)}; {ours}"


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "worker-src blob:; img-src data:"
    )


def _data(document: object) -> bytes:
    """Return a document that no parser of HTML takes for markup."""
    return msgspec.json.encode(document).replace(b"<", b"\\u003c")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@cache
def _built(name: str) -> str:
    return (resources.files(__package__) / "built" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"

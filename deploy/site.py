"""What mkdocs is told about our pages: files of the repository that are no part of the site are named, not linked."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A hook of mkdocs: a link that leaves `docs` becomes its words and the path."""
    folder = posixpath.dirname(page.file.src_uri)

    def name(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, found[2].partition("#")[0]))
        if target.startswith("docs/"):
            return found[0]
        words = found[1].strip("`")
        return f"`{target}`" if words.rstrip("/") == target else f"{found[1]} (`{target}`)"

    return _LINK.sub(name, markdown)

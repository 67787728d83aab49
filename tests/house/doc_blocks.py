"""The fenced blocks of the README and the guides."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
#: Decisions and tables of fields have nothing to run.
PAGES = {
    str(page.relative_to(ROOT)): page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_COMMENT = re.compile(r"\s+#\s.*$")


class Block(msgspec.Struct, frozen=True, kw_only=True):
    page: str
    line: int
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """What stands behind a dollar sign, continued lines joined, without the remark behind it."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [
            _COMMENT.sub("", line.strip().removeprefix("$ "))
            for line in lines
            if line.strip().startswith("$ ")
        ]


def blocks() -> list[Block]:
    return [
        Block(
            page=name,
            line=text.count("\n", 0, found.start()) + 1,
            language=found["language"],
            text=found["text"],
        )
        for name, page in PAGES.items()
        for text in [page.read_text("utf-8")]
        for found in _BLOCK.finditer(text)
    ]

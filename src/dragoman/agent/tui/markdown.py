"""Render Markdown while it streams: word by word in paragraphs, line by line in code blocks and tables."""

from __future__ import annotations

import re

from dragoman.agent.tui.style import TerminalStyle, display_width, escape_controls

_FENCE = re.compile(r"\s*(```+|~~~+)\s*([^`]*)")
_HEADING = re.compile(r"(#{1,6})\s+(?=\S)")
_BULLET = re.compile(r"(\s*)[-*+]\s+(?=\S)")
_NUMBER = re.compile(r"(\s*)(\d{1,9}[.)])\s+(?=\S)")
_QUOTE = re.compile(r">\s?(?=\S)")
_RULE = re.compile(r"\s*([-*_])(\s*\1){2,}\s*")
#: The beginning of a line whose block type is still unknown, or that must be complete before it is printed.
_UNDECIDED = re.compile(
    r"\s*(#{1,6}\s*|[-*+_][-*+_\s]*|\d{1,9}[.)]?\s*|`{1,2}|~{1,2}|(```|~~~).*|>\s?|\|.*)?"
)
_MARK = re.compile(r"\*\*|`")
_OPENS_BOLD = re.compile(r"\*\*[\w`\"'(\[]")
_RULE_WIDTH = 40
_MAX_PENDING_CHARS = 2_000  # of an unprinted line: scanning it again for every chunk is quadratic


class Markdown:
    """`feed` takes a piece of Markdown and returns what to print; `close` ends the last line.

    Without colours the emphasis and code marks are printed as they are.
    """

    def __init__(self, style: TerminalStyle) -> None:
        self._style = style
        self._pending = ""  # the part of the current line that is not printed yet
        self._fence = ""  # the fence that closes the current code block
        self._inside = False  # a line of a paragraph has been printed in part
        self._column = 0
        self._hang = ""
        self._base: tuple[str, ...] = ()
        self._bold = False
        self._code = False
        self._gap = False  # print a space before the next word

    def feed(self, text: str) -> str:
        self._pending += escape_controls(text)
        *lines, self._pending = self._pending.split("\n")
        printed = [self._line(line) for line in lines]
        if self._inside or not (self._fence or _UNDECIDED.fullmatch(self._pending)):
            printed.append(self._begun())
        if len(self._pending) > _MAX_PENDING_CHARS:
            printed.append(self.close())
        return "".join(printed)

    def close(self) -> str:
        """Return the rest of the current line with a newline, or "" if the line is empty."""
        if not self._pending and not self._inside:
            return ""
        rest, self._pending = self._pending, ""
        return self._line(rest)

    def _begun(self) -> str:
        """Return the complete words of the unfinished line."""
        head = "" if self._inside else self._open()
        cut = max(self._pending.rfind(" "), self._pending.rfind("\t")) + 1
        whole, self._pending = self._pending[:cut], self._pending[cut:]
        return head + self._words(whole)

    def _line(self, line: str) -> str:
        if self._inside:
            return self._words(line) + self._end()
        if self._fence:
            return self._code_line(line)
        fence = _FENCE.fullmatch(line)
        if fence is not None:
            self._fence = fence[1]
            return self._style.paint(f"  ┌ {fence[2].strip()}".rstrip(), "dim") + "\n"
        if not line.strip():
            return "\n"
        if _RULE.fullmatch(line):
            return self._style.paint("─" * min(_RULE_WIDTH, self._style.width), "dim") + "\n"
        if line.lstrip().startswith("|"):
            return f"{line}\n"
        self._pending, rest = line, self._pending
        head = self._open()
        line, self._pending = self._pending, rest
        return head + self._words(line) + self._end()

    def _code_line(self, line: str) -> str:
        if line.strip().startswith(self._fence) and not line.strip().strip("`~"):
            self._fence = ""
            return self._style.paint("  └", "dim") + "\n"
        return f"{self._style.paint('  │', 'dim')} {self._style.paint(line, 'green')}\n"

    def _open(self) -> str:
        """Begin a paragraph line: return its bullet or number, and set the indentation of wrapped lines."""
        self._inside, self._bold, self._code, self._gap = True, False, False, False
        self._base, self._hang = (), ""
        head = self._take_head()
        self._column = display_width(head)
        self._hang = " " * self._column if not head.startswith("│") else head
        return self._style.paint(head, "cyan" if head.strip() else "dim")

    def _take_head(self) -> str:
        line = self._pending
        heading = _HEADING.match(line)
        if heading is not None:
            self._pending, self._base = line[heading.end() :], ("bold", "cyan")
            return "" if self._style.colour else f"{heading[1]} "
        bullet = _BULLET.match(line)
        if bullet is not None:
            self._pending = line[bullet.end() :]
            return f"{bullet[1]}• "
        number = _NUMBER.match(line)
        if number is not None:
            self._pending = line[number.end() :]
            return f"{number[1]}{number[2]} "
        quote = _QUOTE.match(line)
        if quote is not None:
            self._pending, self._base = line[quote.end() :], ("dim",)
            return "│ "
        stripped = line.lstrip()
        self._pending = stripped
        return line[: len(line) - len(stripped)]

    def _words(self, text: str) -> str:
        printed = []
        for piece in re.findall(r"\s+|\S+", text):
            if piece.isspace():
                self._gap = True
            else:
                printed.append(self._word(piece))
        return "".join(printed)

    def _word(self, word: str) -> str:
        painted, width = self._inline(word)
        gap = " " if self._gap and self._column > display_width(self._hang) else ""
        self._gap = False
        if self._column > display_width(self._hang) and self._column + len(gap) + width > self._style.width:
            self._column = display_width(self._hang) + width
            return f"\n{self._hang}{painted}"
        self._column += len(gap) + width
        return gap + painted

    def _inline(self, word: str) -> tuple[str, int]:
        """Return the coloured word and its width in columns."""
        if not self._style.colour:
            return word, display_width(word)
        painted, width, start = "", 0, 0
        for mark in _MARK.finditer(word):
            if not self._toggles(word, mark):
                continue
            piece = word[start : mark.start()]
            painted, width = painted + self._paint(piece), width + display_width(piece)
            start = mark.end()
            if mark[0] == "`":
                self._code = not self._code
            else:
                self._bold = not self._bold
        return painted + self._paint(word[start:]), width + display_width(word[start:])

    def _toggles(self, word: str, mark: re.Match[str]) -> bool:
        """Return whether a mark starts or ends a span; the stars of a glob and those in code do not."""
        if mark[0] == "`":
            return True
        if self._code:
            return False
        return self._bold or _OPENS_BOLD.match(word, mark.start()) is not None

    def _paint(self, text: str) -> str:
        if self._code:
            return self._style.paint(text, "yellow")
        return self._style.paint(text, *self._base, *(("bold",) if self._bold else ()))

    def _end(self) -> str:
        self._inside = False
        return "\n"

"""Markdown on a terminal: painted while it arrives, never garbled, never obeyed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.agent.tui.markdown import Markdown
from dragoman.agent.tui.screens import paint_preview
from dragoman.agent.tui.style import TerminalStyle, detect_style, display_width, escape_controls, shorten

PLAIN = TerminalStyle(width=40)
COLOUR = TerminalStyle(colour=True, width=40)
_PAINT = re.compile(r"\x1b\[[0-9;]*m")

DOCUMENT = """\
# Title **bold**

Some `inline code` and **strong words** in a paragraph that is longer than the terminal is wide.
- one
- two `x`
  - nested with a line that is longer than the terminal is wide, too
1. first
> quoted
| a | b |
---
```rust
fn main() { /* **not bold** */ }
```
The glob **/*.rs and snake_case_name and 2 * 3 stay.
"""


def render(text: str, style: TerminalStyle, size: int = 10_000) -> str:
    markdown = Markdown(style)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return "".join(map(markdown.feed, pieces)) + markdown.close()


def test_every_kind_of_line_has_its_look() -> None:
    assert render(DOCUMENT, PLAIN) == (
        "# Title **bold**\n\n"
        "Some `inline code` and **strong words**\nin a paragraph that is longer than the\nterminal is wide.\n"
        "• one\n• two `x`\n  • nested with a line that is longer\n    than the terminal is wide, too\n"
        "1. first\n│ quoted\n| a | b |\n" + "─" * 40 + "\n"
        "  ┌ rust\n  │ fn main() { /* **not bold** */ }\n  └\n"
        "The glob **/*.rs and snake_case_name and\n2 * 3 stay.\n"
    )


def test_colours_take_the_place_of_marks_and_hide_nothing_else() -> None:
    painted = render(DOCUMENT, COLOUR)
    assert "\x1b[1;36mTitle\x1b[0m" in painted
    assert "\x1b[33minline\x1b[0m \x1b[33mcode\x1b[0m" in painted
    assert "\x1b[1mstrong\x1b[0m" in painted
    assert "\x1b[32mfn main() { /* **not bold** */ }\x1b[0m" in painted
    bare = _PAINT.sub("", painted)
    assert "The glob **/*.rs and snake_case_name" in bare
    assert "`" not in bare


@pytest.mark.parametrize("style", [PLAIN, COLOUR], ids=["plain", "colour"])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_slicing_changes_nothing(style: TerminalStyle, size: int) -> None:
    assert render(DOCUMENT, style, size) == render(DOCUMENT, style)


@given(st.text(alphabet="ab *`#->|1.\n~_\t", max_size=200), st.integers(1, 9))
def test_any_text_in_any_slices_is_the_same_and_loses_no_letter(text: str, size: int) -> None:
    whole = render(text, PLAIN)
    assert render(text, PLAIN, size) == whole
    assert whole.count("a") == text.count("a") or "```" in text or "~~~" in text


def test_words_of_a_paragraph_are_shown_before_its_line_ends() -> None:
    markdown = Markdown(PLAIN)
    assert markdown.feed("Hello wor") == "Hello"
    assert markdown.feed("ld and") == " world"
    assert markdown.close() == " and\n"
    assert markdown.close() == ""


def test_a_code_block_without_an_end_is_code_to_the_end() -> None:
    assert render("```\nx = 1", PLAIN) == "  ┌\n  │ x = 1\n"


def test_one_endless_line_costs_no_more_than_its_length() -> None:
    markdown = Markdown(PLAIN)
    markdown.feed("```\n")
    printed = "".join(markdown.feed("x" * 100) for _ in range(1_000)) + markdown.close()
    assert printed.count("x") == 100_000


def test_what_a_terminal_would_obey_is_shown_instead() -> None:
    assert escape_controls("a\x1b]0;title\x07b\r\nc\td\x9b1m") == "a␛]0;title␇b\nc\td\ufffd1m"
    assert escape_controls("user\u202etxt.exe\x7f\ud800") == "user\ufffdtxt.exe␡\ufffd"
    assert "\x1b" not in render("\x1b[2J\x1b[1;31mred", PLAIN)


def test_widths_are_columns_and_not_characters() -> None:
    assert display_width("日本") == 4
    assert display_width("e\u0301") == 1
    assert shorten("日本語の長い文", 6) == "日本…"
    assert shorten("two\nlines  and more", 40) == "two lines and more"
    wide = render("日本語 " * 20, PLAIN)
    assert all(display_width(line) <= 40 for line in wide.splitlines())


class Stream:
    def __init__(self, *, terminal: bool) -> None:
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("terminal", "env", "colour", "live"),
    [
        (True, {"TERM": "xterm"}, True, True),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False, True),
        (True, {"TERM": "dumb"}, False, False),
        (False, {"TERM": "xterm"}, False, False),
    ],
)
def test_colours_only_for_a_person_who_wants_them(
    terminal: bool, env: dict[str, str], colour: bool, live: bool
) -> None:
    style = detect_style(Stream(terminal=terminal), env)  # type: ignore[arg-type]
    assert (style.colour, style.live) == (colour, live)


def test_a_diff_is_coloured_and_a_long_one_says_what_it_leaves_out() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\x1b[2J\n+new\n same"
    painted = paint_preview(diff, COLOUR)
    assert "\x1b[31m-old␛[2J\x1b[0m" in painted
    assert "\x1b[32m+new\x1b[0m" in painted
    assert "\x1b[1m+++ b/x\x1b[0m" in painted
    assert "\n   same" in painted
    long = paint_preview("\n".join(f"+{number}" for number in range(100)), PLAIN, max_lines=10)
    assert "… 90 more lines …" in long
    assert len(long.splitlines()) == 11

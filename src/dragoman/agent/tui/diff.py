"""Coloured previews of changes."""

from __future__ import annotations

from dragoman.agent.tui.style import TerminalStyle, escape_controls

MAX_PREVIEW_LINES = 60
_DIFF_COLOURS = {"+": ("green",), "-": ("red",), "@": ("cyan",)}


def paint_preview(preview: str, style: TerminalStyle, max_lines: int = MAX_PREVIEW_LINES) -> str:
    """Colour a unified diff or any other text; lines in the middle are left out if there are too many."""
    lines = escape_controls(preview).splitlines()
    if len(lines) > max_lines:
        half = max_lines // 2
        left_out = len(lines) - 2 * half
        lines = [*lines[:half], f"… {left_out} more lines …", *lines[-half:]]
    return "\n".join(f"  {_paint_line(line, style)}" for line in lines)


def _paint_line(line: str, style: TerminalStyle) -> str:
    if line.startswith(("+++", "---")):
        return style.paint(line, "bold")
    return style.paint(line, *_DIFF_COLOURS.get(line[:1], ()))

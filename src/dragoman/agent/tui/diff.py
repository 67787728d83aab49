"""Coloured previews of changes."""

from __future__ import annotations

from dragoman.agent.tui.style import Style, harmless

MAX_LINES = 60
_COLOURS = {"+": ("green",), "-": ("red",), "@": ("cyan",)}


def paint_preview(preview: str, style: Style, max_lines: int = MAX_LINES) -> str:
    """Colour a unified diff or any other text; lines in the middle are left out if there are too many."""
    lines = harmless(preview).splitlines()
    if len(lines) > max_lines:
        half = max_lines // 2
        left_out = len(lines) - 2 * half
        lines = [*lines[:half], f"… {left_out} more lines …", *lines[-half:]]
    return "\n".join(f"  {_paint(line, style)}" for line in lines)


def _paint(line: str, style: Style) -> str:
    if line.startswith(("+++", "---")):
        return style.paint(line, "bold")
    return style.paint(line, *_COLOURS.get(line[:1], ()))

"""`dragoman claude|codex|…`: start a gateway and run the real client on it."""

from __future__ import annotations

from dragoman.cli.launch.start import explain, run

__all__ = ["explain", "run"]

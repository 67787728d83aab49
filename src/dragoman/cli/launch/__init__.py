"""`dragoman claude|codex|…`: a gateway, and the real client on it with everything set."""

from __future__ import annotations

from dragoman.cli.launch.start import explain, run

__all__ = ["explain", "run"]

"""`dragoman doctor`: is everything as it should be, does every client really arrive, and what would help."""

from __future__ import annotations

from dragoman.cli.doctor.command import make_parser, run

__all__ = ["make_parser", "run"]

"""`dragoman doctor`: check the installation, test every client, and suggest or make repairs."""

from __future__ import annotations

from dragoman.cli.doctor.command import make_parser, run

__all__ = ["make_parser", "run"]

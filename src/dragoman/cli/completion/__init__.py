"""`dragoman completion bash|zsh|fish`: what a shell may offer, read off the commands' own parsers."""

from __future__ import annotations

from dragoman.cli.completion.command import make_parser, run

__all__ = ["make_parser", "run"]

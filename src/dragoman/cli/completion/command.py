"""The command that prints the script of one shell."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from dragoman.cli.completion import bash, fish, zsh
from dragoman.cli.completion.words import Word, describe
from dragoman.cli.manual import new_parser
from dragoman.cli.screen import Failure, say

_SHELLS: dict[str, Callable[[tuple[Word, ...]], str]] = {
    "bash": bash.script,
    "zsh": zsh.script,
    "fish": fish.script,
}
_EXAMPLES = """\
examples:
  eval "$(dragoman completion bash)"                                       in ~/.bashrc
  eval "$(dragoman completion zsh)"                                        in ~/.zshrc, after compinit
  dragoman completion fish > ~/.config/fish/completions/dragoman.fish      once"""


def run(argv: list[str]) -> int:
    from dragoman.cli.main import COMMANDS, LAUNCHED  # which knows us by name only

    args = make_parser().parse_args(argv)
    shell = args.shell or Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise Failure(f"there is no completion for {shell!r}", hint=f"one of {', '.join(_SHELLS)}", code=2)
    say(_SHELLS[shell](describe(COMMANDS, LAUNCHED)).rstrip("\n"))
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "completion", "Print a script by which a shell completes dragoman's commands and flags.", _EXAMPLES
    )
    parser.add_argument("shell", nargs="?", choices=tuple(_SHELLS), help="which shell (default: yours)")
    return parser

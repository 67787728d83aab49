"""`dragoman completion bash|zsh|fish`: shtab writes the script from the parsers of the commands."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

import shtab

from dragoman.cli.manual import new_parser
from dragoman.cli.screen import Failure, say

_SHELLS = ("bash", "zsh", "fish")
_PATHS = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY}
# zsh offers no flags in the place of a positional argument that has no completer, so it gets an empty list.
_NOTHING: shtab.CompleteType = {"zsh": "( )"}
_EXAMPLES = """\
examples:
  eval "$(dragoman completion bash)"                                       in ~/.bashrc
  eval "$(dragoman completion zsh)"                                        in ~/.zshrc, after compinit
  dragoman completion fish > ~/.config/fish/completions/dragoman.fish      once"""


def run(argv: list[str]) -> int:
    args = make_parser().parse_args(argv)
    shell = args.shell or Path(os.environ.get("SHELL", "")).name
    if shell not in _SHELLS:
        raise Failure(f"there is no completion for {shell!r}", hint=f"one of {', '.join(_SHELLS)}", code=2)
    say(shtab.complete(root_parser(), shell))
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "completion", "Print a script by which a shell completes dragoman's commands and flags.", _EXAMPLES
    )
    parser.add_argument("shell", nargs="?", choices=_SHELLS, help="which shell (default: yours)")
    return parser


def root_parser() -> argparse.ArgumentParser:
    """One parser with every command as a subcommand. Only completion needs all of them at once."""
    from dragoman.cli.main import COMMANDS, LAUNCHED  # main imports this module by name

    root = argparse.ArgumentParser(prog="dragoman")
    root.add_argument("--version", action="version", help="show the version")
    commands = root.add_subparsers()
    for name, (module, about) in COMMANDS.items():
        if name in LAUNCHED:
            # The arguments belong to the client: offer files.
            client = commands.add_parser(name, help=about, add_help=False)
            client.add_argument("arguments", nargs=argparse.REMAINDER, metavar="FILE")
        else:
            parser = importlib.import_module(module).make_parser()
            commands.add_parser(name, help=about, parents=[parser], add_help=False)
    commands.add_parser("help", help="about a command").add_argument("command", choices=tuple(COMMANDS))
    _set_completers(root)
    return root


def _set_completers(parser: argparse.ArgumentParser) -> None:
    """Let every argument whose metavar is FILE or DIR complete paths; shtab reads `complete`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                _set_completers(child)
        elif action.metavar in _PATHS:
            action.complete = _PATHS[str(action.metavar)]  # type: ignore[attr-defined]
        elif not action.option_strings and not action.choices:
            action.complete = _NOTHING  # type: ignore[attr-defined]

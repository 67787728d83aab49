"""`dragoman init`: write a settings file with every setting commented out."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from pathlib import Path

from dragoman.cli.help_pages import new_parser
from dragoman.cli.settings import CONFIG_FILE, make_state_folder, state_folder
from dragoman.cli.terminal import CommandError, print_result, print_status
from dragoman.config.template import config_template

_EXAMPLES = """\
examples:
  dragoman init                        config.toml in the state folder
  dragoman init --file team.toml       somewhere else: dragoman serve --config team.toml
  dragoman init --print                print it

Every line is a comment until you change it. An existing file is overwritten only after a confirmation, and a backup
is kept."""


def run(argv: list[str]) -> int:
    args = make_parser().parse_args(argv)
    if args.print:
        print_result(config_template().rstrip("\n"))
        return 0
    file = Path(args.file or os.environ.get("DRAGOMAN_CONFIG") or state_folder(os.environ) / CONFIG_FILE)
    file = file.expanduser().absolute()
    if not args.file:
        make_state_folder(file.parent)
    if file.exists() or file.is_symlink():
        _confirm(file, yes=args.yes)
        copy = file.with_name(f"{file.name}.bak-{secrets.token_hex(3)}")
        file.replace(copy)
        print_status(f"the backup is {copy}")
    _write(file)
    print_result(f"written: {file}")
    print_status("every line is a commented-out default; dragoman config check validates your changes")
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser("init", "Write a settings file in which every setting is explained.", _EXAMPLES)
    parser.add_argument(
        "--file", metavar="FILE", help="the file to write (default: DRAGOMAN_CONFIG, then HOME/config.toml)"
    )
    parser.add_argument("--print", action="store_true", help="write to standard output instead")
    parser.add_argument("--yes", action="store_true", help="replace an existing file; a backup is kept")
    return parser


def _confirm(file: Path, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(
            f"{file} exists already", hint="--yes replaces it and keeps a backup; --print prints to stdout"
        )
    print(
        f"{file} exists already; replace it (a backup is kept)? [y/N] ", end="", file=sys.stderr, flush=True
    )
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was changed")


def _write(file: Path) -> None:
    """Write the template, readable only by its owner, because users may add keys to it."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(config_template())

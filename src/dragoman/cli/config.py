"""`dragoman config check|show`: validate or print the settings."""

from __future__ import annotations

import argparse
import sys

from dragoman.cli.banner import describe_models, describe_upstream
from dragoman.cli.help_pages import new_parser
from dragoman.cli.settings import Settings, add_config_flag, print_setting_notes, read_settings
from dragoman.cli.terminal import paint, print_result
from dragoman.config import show_config

_EXAMPLES = """\
examples:
  dragoman config check               the settings a gateway would use now
  dragoman config check team.toml     the same with another file
  dragoman config show                every setting as TOML, secrets hidden, with its origin

Precedence, lowest first: defaults, the file, DRAGOMAN_* and Google's own variables, flags."""


def run(argv: list[str]) -> int:
    """Check or show the settings; an invalid setting raises `ConfigError` (exit code 2)."""
    args = make_parser().parse_args(argv)
    settings = read_settings(getattr(args, "file", None) or args.config)
    print_setting_notes(settings)
    print_result(
        _summary(settings)
        if args.verb == "check"
        else show_config(settings.config, settings.loaded.sources).rstrip()
    )
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "config",
        "Check or show the settings.",
        _EXAMPLES,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="check|show")
    check = verbs.add_parser("check", help="validate the settings and print a summary")
    check.add_argument("file", nargs="?", metavar="FILE", help="settings file")
    show = verbs.add_parser("show", help="print every setting with its origin")
    for verb in (check, show):
        add_config_flag(verb)
    return parser


def _summary(settings: Settings) -> str:
    config = settings.config
    valid = paint("settings are valid", "green", sys.stdout)
    return "\n".join(
        [
            f"{valid}: {settings.file or 'no file, defaults and environment only'}",
            f"  listens on  {config.server.host}:{config.server.port}",
            f"  upstream    {describe_upstream(config)}",
            f"  state       {settings.home}",
            "  models",
            *(f"    {row}" for row in describe_models(config)),
        ]
    )

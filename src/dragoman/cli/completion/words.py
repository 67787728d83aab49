"""Every command with what may follow it, as plain values; the parsers are the only source."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping

import msgspec

_FILES = {"FILE", "DIR"}


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A flag: its spellings, its meaning, and what its value may be."""

    names: tuple[str, ...]
    about: str = ""
    takes_value: bool = False
    choices: tuple[str, ...] = ()
    is_file: bool = False


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """A command or a verb of one; `choices` are what its first argument may be."""

    name: str
    about: str = ""
    options: tuple[Option, ...] = ()
    verbs: tuple[Word, ...] = ()
    choices: tuple[str, ...] = ()
    #: Somebody else's arguments follow: the shell offers files.
    foreign: bool = False


def describe(commands: Mapping[str, tuple[str, str]], launched: Mapping[str, str]) -> tuple[Word, ...]:
    """Of the table of commands; the launched clients' arguments are their own."""
    words = []
    for name, (module, about) in commands.items():
        if name in launched:
            words.append(Word(name=name, about=about, foreign=True))
            continue
        words.append(read_parser(name, about, importlib.import_module(module).make_parser()))
    names = tuple(commands)
    words.append(Word(name="help", about="about a command", choices=names))
    return tuple(words)


def read_parser(name: str, about: str, parser: argparse.ArgumentParser) -> Word:
    options: list[Option] = []
    verbs: tuple[Word, ...] = ()
    choices: tuple[str, ...] = ()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            verbs = tuple(read_parser(verb, helps.get(verb, ""), sub) for verb, sub in action.choices.items())
        elif action.option_strings and action.help != argparse.SUPPRESS:
            options.append(_option(action))
        elif action.choices:
            choices = choices or tuple(map(str, action.choices))
    return Word(name=name, about=about, options=tuple(options), verbs=verbs, choices=choices)


def _option(action: argparse.Action) -> Option:
    return Option(
        names=tuple(action.option_strings),
        about=(action.help or "").replace("%%", "%"),
        takes_value=action.nargs != 0,
        choices=tuple(map(str, action.choices or ())),
        is_file=action.metavar in _FILES,
    )

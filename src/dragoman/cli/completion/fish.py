"""The words as a completion for fish."""

from __future__ import annotations

from dragoman.cli.completion.words import Option, Word

_HEAD = "# dragoman completion for fish: dragoman completion fish > ~/.config/fish/completions/dragoman.fish"


def script(words: tuple[Word, ...]) -> str:
    lines = [_HEAD, "complete -c dragoman -f"]
    lines += [
        f"complete -c dragoman -n __fish_use_subcommand -a {word.name} -d {_quoted(word.about)}"
        for word in words
    ]
    return "\n".join([*lines, *(line for word in words for line in _word(word))]) + "\n"


def _word(word: Word) -> list[str]:
    seen = f"__fish_seen_subcommand_from {word.name}"
    if word.foreign:
        return [f"complete -c dragoman -n {_quoted(seen)} -F"]
    lines = [f"complete -c dragoman -n {_quoted(seen)} {_option(option)}" for option in word.options]
    if word.choices:
        lines.append(f"complete -c dragoman -n {_quoted(seen)} -a {_quoted(' '.join(word.choices))}")
    names = " ".join(verb.name for verb in word.verbs)
    for verb in word.verbs:
        none_yet = f"{seen}; and not __fish_seen_subcommand_from {names}"
        lines.append(f"complete -c dragoman -n {_quoted(none_yet)} -a {verb.name} -d {_quoted(verb.about)}")
        both = f"{seen}; and __fish_seen_subcommand_from {verb.name}"
        lines += [f"complete -c dragoman -n {_quoted(both)} {_option(option)}" for option in verb.options]
    return lines


def _option(option: Option) -> str:
    parts = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    if option.takes_value:
        parts.append(f"-x -a {_quoted(' '.join(option.choices))}" if option.choices else "-r")
        parts += ["-F"] if option.is_file else []
    return " ".join([*parts, f"-d {_quoted(option.about)}"])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

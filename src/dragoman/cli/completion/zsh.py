"""The words as a completion for zsh."""

from __future__ import annotations

from dragoman.cli.completion.words import Option, Word

_FRAME = """\
#compdef dragoman
# dragoman completion for zsh: eval "$(dragoman completion zsh)" in ~/.zshrc, after compinit
_dragoman() {{
  local context state line
  local -a commands
  commands=(
{commands}
  )
  _arguments -C '(- *)--help[show the commands]' '(- *)--version[show the version]' '1: :->command' '*:: :->rest'
  case $state in
    command) _describe 'command' commands;;
    rest)
      case $line[1] in
{cases}
        *) _files;;
      esac;;
  esac
}}
{functions}
compdef _dragoman dragoman
"""
_VERBS = """\
_dragoman_{name}() {{
  local context state line
  local -a verbs
  verbs=(
{verbs}
  )
  _arguments -C {options} '1: :->verb' '*:: :->rest'
  case $state in
    verb) _describe 'verb' verbs;;
    rest)
      case $line[1] in
{cases}
      esac;;
  esac
}}"""


def script(words: tuple[Word, ...]) -> str:
    commands = "\n".join(_described(word) for word in words)
    own = [word for word in words if not word.foreign]
    cases = "\n".join(f"        {word.name}) _dragoman_{word.name};;" for word in own)
    return _FRAME.format(commands=commands, cases=cases, functions="\n".join(_function(word) for word in own))


def _function(word: Word) -> str:
    if not word.verbs:
        return f"_dragoman_{word.name}() {{\n  {_arguments(word)}\n}}"
    cases = "\n".join(f"        {verb.name}) {_arguments(verb)};;" for verb in word.verbs)
    return _VERBS.format(
        name=word.name,
        verbs="\n".join(_described(verb) for verb in word.verbs),
        options=" ".join(_options(word)),
        cases=cases,
    )


def _arguments(word: Word) -> str:
    rest = f"'*: :({' '.join(word.choices)})'" if word.choices else "'*: :_files'"
    return " ".join(["_arguments", *_options(word), rest])


def _options(word: Word) -> list[str]:
    return [_spec(name, option) for option in word.options for name in option.names]


def _spec(name: str, option: Option) -> str:
    value = ""
    if option.takes_value:
        value = f": :({' '.join(option.choices)})" if option.choices else ": :_files"
    return "'" + f"{name}[{_plain(option.about)}]{value}" + "'"


def _described(word: Word) -> str:
    return f"    '{word.name}:{_plain(word.about)}'"


def _plain(text: str) -> str:
    """Without the characters that mean something to zsh here."""
    return text.replace("\\", "").replace("'", "’").replace("[", "(").replace("]", ")").replace(":", "\\:")

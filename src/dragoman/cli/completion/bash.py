"""The words as a completion for bash; needs nothing but bash itself."""

from __future__ import annotations

from dragoman.cli.completion.words import Option, Word

_FRAME = """\
# dragoman completion for bash: eval "$(dragoman completion bash)" in ~/.bashrc
_dragoman() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev= path= word index
  (( COMP_CWORD > 0 )) && prev=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  for (( index=1; index < COMP_CWORD; index++ )); do
    word=${{COMP_WORDS[index]}}
    case "$path/$word" in
{paths}
    esac
  done
  case "$path:$prev" in
{values}
  esac
  case "$path" in
{words}
    *) COMPREPLY=( $(compgen -f -- "$cur") );;
  esac
  if [[ ${{#COMPREPLY[@]}} -eq 0 && $cur != -* ]]; then COMPREPLY=( $(compgen -f -- "$cur") ); fi
}}
complete -o filenames -F _dragoman dragoman
"""


def script(words: tuple[Word, ...]) -> str:
    paths: list[str] = []
    values: list[str] = []
    offers: list[str] = [_offer('""', [word.name for word in words] + ["--help", "--version"])]
    for word in words:
        _add(word, "", paths, values, offers)
    return _FRAME.format(paths="\n".join(paths), values="\n".join(values), words="\n".join(offers))


def _add(word: Word, above: str, paths: list[str], values: list[str], offers: list[str]) -> None:
    path = f"{above}/{word.name}"
    paths.append(f'      "{path}") path="{path}";;')
    if word.foreign:
        return
    names = [name for option in word.options for name in option.names]
    offers.append(_offer(path, [*(verb.name for verb in word.verbs), *word.choices, *names]))
    values += [line for option in word.options if option.takes_value for line in _values(path, option)]
    for verb in word.verbs:
        _add(verb, path, paths, values, offers)


def _offer(path: str, names: list[str]) -> str:
    return f'    {path}) COMPREPLY=( $(compgen -W "{" ".join(names)}" -- "$cur") );;'


def _values(path: str, option: Option) -> list[str]:
    """What follows a flag: its choices, files, or nothing that could be guessed."""
    pattern = "|".join(f'"{path}:{name}"' for name in option.names)
    offered = f'-W "{" ".join(option.choices)}"' if option.choices else "-f" if option.is_file else ""
    reply = f'COMPREPLY=( $(compgen {offered} -- "$cur") ); ' if offered else ""
    return [f"    {pattern}) {reply}return;;"]

"""Directives: exact instructions to the model in the text of the user.

    plan  = [think TEXT] step { then step } [ then say TEXT [ then cite URL ] ]
    step  = use { and use }
    use   = `use NAME with {JSON}`

Other prose may surround them. TEXT is a JSON string, or ends at the next `then` before a directive or at the
end of its line. A `say` before a `use` becomes the text before the calls of that step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_USE = re.compile(r"\buse\s+[`\"']?(?P<name>[A-Za-z_][\w.:-]*)[`\"']?\s+with\s+(?=\{\s*[\"}])", re.IGNORECASE)
#: Recognized only at the start of a sentence or clause, because prose can contain these words.
_WORD = re.compile(
    r"(?:^|(?<=[.:;!?,\n])|\b(?:then|and|please|just))[ \t]*\b(?P<verb>say|think|cite(?=\s+https?:))[ \t]+(?P<rest>\S)",
    re.IGNORECASE | re.MULTILINE,
)
_TEXT_END = re.compile(
    r"\s*[,;]?\s*\b(?:then|and)\s+(?:use\s+\S+\s+with\s+\{|say\s|think\s|cite\s+https?:)|\n|\Z", re.IGNORECASE
)
_TOGETHER = re.compile(r"[\s,;]*and(?:\s+also)?\s+", re.IGNORECASE)
_decoder = json.JSONDecoder(strict=False)


class DirectiveCall(msgspec.Struct, frozen=True):
    """One call to make, by the name in the user's text."""

    name: str
    args: Mapping[str, Any]


class DirectiveStep(msgspec.Struct, frozen=True):
    """The calls of one step, with the text before them."""

    calls: tuple[DirectiveCall, ...]
    text: str = ""


class DirectivePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the user's directives ask for in this turn."""

    steps: tuple[DirectiveStep, ...] = ()
    say: str | None = None
    think: str | None = None
    cited_urls: tuple[str, ...] = ()


class _Token(msgspec.Struct, frozen=True):
    verb: str
    start: int
    end: int
    text: str = ""
    call: DirectiveCall | None = None


def read_directives(user_text: str) -> DirectivePlan:
    """Return the plan in the user's text; empty if it has no directive."""
    steps: list[DirectiveStep] = []
    say = think = None
    cites: tuple[str, ...] = ()
    end_of_use = -1
    for token in _tokens(user_text):
        if token.verb == "think":
            think = token.text
        elif token.verb == "cite":
            cites = (*cites, token.text.split()[0])
        elif token.verb == "say":
            say = token.text if say is None else f"{say}\n{token.text}"
        elif token.call is not None:
            together = end_of_use >= 0 and _TOGETHER.fullmatch(user_text, end_of_use, token.start)
            if together and steps:
                steps[-1] = DirectiveStep((*steps[-1].calls, token.call), steps[-1].text)
            else:
                steps.append(DirectiveStep((token.call,), say or ""))
                say = None
            end_of_use = token.end
    return DirectivePlan(steps=tuple(steps), say=say, think=think, cited_urls=cites)


def _tokens(user_text: str) -> Iterator[_Token]:
    """Yield the directives in order, without those inside the JSON or text of another directive."""
    position = 0
    use, word = _next_call(user_text, 0), _WORD.search(user_text)
    while token := _first_token(user_text, use, word):
        yield token
        position = max(token.end, position + 1)
        # Search again only after a match is consumed: pasted logs have thousands of these words.
        if use is not None and use.start < position:
            use = _next_call(user_text, position)
        if word is not None and word.start() < position:
            word = _WORD.search(user_text, position)


def _first_token(user_text: str, use: _Token | None, word: re.Match[str] | None) -> _Token | None:
    if word is None or (use is not None and use.start < word.start("verb")):
        return use
    text, end = _read_text(user_text, word.start("rest"))
    return _Token(word["verb"].lower(), word.start(), end, text)


def _next_call(user_text: str, position: int) -> _Token | None:
    while match := _USE.search(user_text, position):
        try:
            args, end = _decoder.raw_decode(user_text, match.end())
        except (ValueError, RecursionError):
            position = match.end()
            continue
        return _Token("use", match.start(), end, call=DirectiveCall(match["name"], args))
    return None


def _read_text(user_text: str, start: int) -> tuple[str, int]:
    if user_text[start] == '"':
        try:
            text, end = _decoder.raw_decode(user_text, start)
        except ValueError:
            pass
        else:
            return str(text), end
    match = _TEXT_END.search(user_text, start)
    end = match.start() if match else len(user_text)
    return user_text[start:end].strip(), end

"""What a docstring says, in Google's, NumPy's or reST style: of the whole, and of each parameter."""

from __future__ import annotations

import inspect

import msgspec


class Documented(msgspec.Struct, frozen=True):
    description: str = ""
    parameters: dict[str, str] = {}


def read_docstring(text: str | None) -> Documented:
    """The words before the sections, and one line of words for each parameter."""
    from docstring_parser import ParseError, parse  # only those who define functions pay for it

    if not text or not text.strip():
        return Documented()
    try:
        found = parse(text)
    except ParseError:  # a section that is broken: the words are still the author's
        return Documented(inspect.cleandoc(text))
    words = [found.short_description or "", found.long_description or ""]
    parameters = {one.arg_name: " ".join((one.description or "").split()) for one in found.params}
    return Documented("\n\n".join(filter(None, words)), parameters)

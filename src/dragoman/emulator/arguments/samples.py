"""Generate scalars from a schema alone: numbers within bounds, strings by format, pattern and length."""

from __future__ import annotations

import math

from dragoman.emulator.arguments.conform import bounds, fits_number
from dragoman.emulator.arguments.nodes import SchemaNode
from dragoman.emulator.arguments.pattern import matches, sample_pattern

_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "PT1S",
    "email": "user@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uri-reference": "/example",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "hostname": "example.com",
    "byte": "AAAA",
    "regex": ".*",
    "json-pointer": "/a",
}
#: Names of properties that get ".", a folder that always exists.
_FOLDERS = frozenset(("path", "dir", "dir_path", "directory", "folder", "root", "cwd"))
_PATTERN_TRIES = 72


def fit_number(value: float, node: SchemaNode, kind: str) -> float:
    """Return the nearest number that the bounds and `multipleOf` allow, as far as there is one."""
    low, low_open, high, high_open = bounds(node)
    if low is not None and (value < low or (low_open and value == low)):
        value = low + 1 if low_open else low
    if high is not None and (value > high or (high_open and value == high)):
        value = high - 1 if high_open else high
    step = node.get("multipleOf")
    if step:
        value = math.ceil(value / step) * step
    return _as_kind(value, kind)


def sample_number(node: SchemaNode, kind: str, variant: int = 0) -> float:
    """Return a small number that fits; a different one for each variant, as far as possible."""
    low, low_open, high, high_open = bounds(node)
    step = node.get("multipleOf") or (1 if kind == "integer" else 0)
    if not step and low is not None and high is not None and high - low <= 1:
        share = (variant + 1) / (variant + 2)
        return low if low == high else _as_kind(low + (high - low) * share, kind)
    step = step or 1
    if low is None and high is not None and high < 1:
        count = math.floor(high / step)
        count -= high_open and count * step == high
        return _as_kind((count - variant) * step, kind)
    start = 1 if low is None else low
    count = math.ceil(start / step)
    count += low is not None and low_open and count * step == low
    found = _as_kind((count + variant) * step, kind)
    # Rounding can miss a multiple; zero is a multiple of everything.
    return found if fits_number(found, node) or not fits_number(0, node) else 0


def fit_text(text: str, node: SchemaNode) -> str:
    text = text.ljust(node.get("minLength", 0), "x")
    return text[: node.get("maxLength", len(text))]


def sample_text(node: SchemaNode, name: str, variant: int = 0) -> str:
    """Return a string of the format or pattern, else the property's name, adjusted in length."""
    pattern = node.get("pattern")
    if pattern is not None:
        for more in range(_PATTERN_TRIES):
            found = sample_pattern(pattern, more=more, variant=variant)
            if matches(pattern, found) and fit_text(found, node) == found:
                return found
    text = _FORMATS.get(str(node.get("format", "")), "." if name in _FOLDERS else name or "text")
    if not variant:
        return fit_text(text, node)
    mark = _letters(variant)
    room = max(0, node.get("maxLength", len(text) + len(mark)) - len(mark))
    return fit_text(mark + text[:room], node)


def _letters(number: int) -> str:
    """Return a, b, … z, ba, …: a different text for each number."""
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 26)
        digits = chr(ord("a") + digit) + digits
    return digits


def _as_kind(value: float, kind: str) -> float:
    whole = kind == "integer" or float(value).is_integer()
    return int(value) if whole else value

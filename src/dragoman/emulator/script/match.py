"""Match a request against conditions.

The result is a list of differences, for error messages; an empty list means that the request matches.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import msgspec

from dragoman.emulator.director import ApiRequest
from dragoman.emulator.parsed_request import read_tools, read_turn, responses_of
from dragoman.emulator.script.model import Conditions, ExactText, FunctionNames, ScriptMethod, TextCondition
from dragoman.emulator.validate.parser import InvalidScalar, read_bytes

_MAX_SHOWN_CHARS = 200
_TEXTS = (("says", "user_text"), ("results", "results"), ("system", "system"))
METHOD_NAMES: Mapping[str, ScriptMethod] = {
    "generateContent": "generate",
    "streamGenerateContent": "stream",
    "countTokens": "count",
}


class RequestView:
    """The properties of a request that conditions test, computed on first use."""

    def __init__(self, api_request: ApiRequest, number: int) -> None:
        self.number = number
        self.method = METHOD_NAMES.get(api_request.route.method, api_request.route.method)
        self.model = api_request.route.model
        self.headers = api_request.headers
        self.request: Mapping[str, Any] = (
            api_request.request.get("generateContentRequest") or api_request.request
        )

    @cached_property
    def contents(self) -> Sequence[Mapping[str, Any]]:
        contents: Sequence[Mapping[str, Any]] = self.request.get("contents", ())
        return contents

    @cached_property
    def user_text(self) -> str:
        return read_turn(self.contents).user_text

    @cached_property
    def declared_functions(self) -> list[str]:
        return [function.name for function in read_tools(self.request).declared_functions]

    @cached_property
    def answered_functions(self) -> list[str]:
        return [response.get("name", "") for response in self._responses]

    @cached_property
    def results(self) -> str:
        """The function responses of the last content as JSON, without ids; a single one is not in a list."""
        bodies = [response.get("response", {}) for response in self._responses]
        return write_json(bodies[0] if len(bodies) == 1 else bodies) if bodies else ""

    @cached_property
    def system(self) -> str:
        parts = self.request.get("systemInstruction", {}).get("parts", ())
        return "\n".join(part["text"] for part in parts if "text" in part)

    @cached_property
    def _responses(self) -> list[Mapping[str, Any]]:
        return responses_of(self.contents[-1]) if self.contents else []


def differences(when: Conditions, view: RequestView) -> list[str]:
    """Return a line for each condition that does not hold: `says: expected …, got …`."""
    return [line for check in _CHECKS for line in check(when, view)]


def write_json(value: Any) -> str:
    """Encode a value canonically: keys are sorted, and bytes are base64 as on the wire."""
    return msgspec.json.encode(value, order="sorted").decode()


def _texts(when: Conditions, view: RequestView) -> Iterator[str]:
    for name, attribute in _TEXTS:
        expected: TextCondition | None = getattr(when, name)
        if expected is not None and not _fits(expected, got := getattr(view, attribute)):
            yield f"{name}: expected {_show_text(expected)}, got {quote_text(got)}"


def _fits(expected: TextCondition, got: str) -> bool:
    if isinstance(expected, str):
        return re.search(expected, got) is not None
    whole = expected.is_ is None or expected.is_ == got
    start = expected.starts is None or got.startswith(expected.starts)
    return whole and start and (expected.sha256 is None or expected.sha256.lower() == text_sha256(got))


def text_sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _show_text(expected: TextCondition) -> str:
    if not isinstance(expected, ExactText):
        return f"/{expected}/"
    if expected.is_ is not None:
        return quote_text(expected.is_)
    start = f"a text that starts {quote_text(expected.starts)}" if expected.starts else "a text"
    return f"{start} with SHA-256 {expected.sha256}" if expected.sha256 else start


def _model(when: Conditions, view: RequestView) -> Iterator[str]:
    if when.model is not None and not fnmatchcase(view.model, when.model):
        yield f"model: expected {when.model}, got {view.model}"


def _method(when: Conditions, view: RequestView) -> Iterator[str]:
    if when.method is not None and view.method != when.method:
        yield f"method: expected {when.method}, got {view.method}"


def _number(when: Conditions, view: RequestView) -> Iterator[str]:
    if when.request is not None and view.number != when.request:
        yield f"request: expected number {when.request}, got number {view.number}"


def _declares(when: Conditions, view: RequestView) -> Iterator[str]:
    for name in names_of(when.declares):
        if not any(fnmatchcase(declared, name) for declared in view.declared_functions):
            yield f"declares: expected {name}, got {', '.join(view.declared_functions) or 'no functions'}"


def _answers(when: Conditions, view: RequestView) -> Iterator[str]:
    if when.answers is None:
        return
    wanted = names_of(when.answers)
    fits = len(wanted) == len(view.answered_functions) and all(
        map(fnmatchcase, view.answered_functions, wanted)
    )
    if not fits:
        got = ", ".join(view.answered_functions) or "no function results"
        yield f"answers: expected {', '.join(wanted) or 'no function results'}, got {got}"


def names_of(names: FunctionNames | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else names


def _headers(when: Conditions, view: RequestView) -> Iterator[str]:
    for name, pattern in (when.header or {}).items():
        got = view.headers.get(name.lower())
        if got is None or not re.search(pattern, got):
            # The value may be a secret, so it is not shown.
            yield f"header: expected {name} to be /{pattern}/, got {'another value' if got else 'no such header'}"


def _contains(when: Conditions, view: RequestView) -> Iterator[str]:
    if when.contains is not None:
        yield from (f"contains: {line}" for line in missing_parts(when.contains, view.request, ""))


def _any(when: Conditions, view: RequestView) -> Iterator[str]:
    tried = [differences(inner, view) for inner in when.any_ or ()]
    if tried and all(tried):
        yield "any: " + "; or ".join(", ".join(lines) for lines in tried)


def _not(when: Conditions, view: RequestView) -> Iterator[str]:
    if when.not_ is not None and not differences(when.not_, view):
        yield f"not: expected none of {_show(when.not_)}"


_CHECKS: tuple[Callable[[Conditions, RequestView], Iterator[str]], ...] = (
    _method,
    _model,
    _number,
    _texts,
    _answers,
    _declares,
    _headers,
    _contains,
    _any,
    _not,
)


def missing_parts(part: Any, whole: Any, where: str) -> Iterator[str]:
    """Yield what of `part` is not in `whole`.

    Mappings are compared by key, lists as ordered subsequences, everything else by value.
    """
    if isinstance(part, Mapping) and isinstance(whole, Mapping):
        for key, value in part.items():
            found = next((name for name in (key, _camel(key)) if name in whole), None)
            place = f"{where}.{key}" if where else key
            if found is None:
                yield f"expected {place} to be {_show(value)}, got nothing"
            else:
                yield from missing_parts(value, whole[found], place)
    elif isinstance(part, list) and isinstance(whole, list):
        yield from _missing_items(part, whole, where)
    elif not _same(part, whole):
        yield f"expected {where or 'the request'} to be {_show(part)}, got {_show(whole)}"


def _missing_items(part: list[Any], whole: list[Any], where: str) -> Iterator[str]:
    position = 0
    for index, item in enumerate(part):
        found = next(
            (at for at in range(position, len(whole)) if not any(missing_parts(item, whole[at], ""))), None
        )
        if found is None:
            later = " after that" if index else ""
            yield f"expected {where}{later} to have {_show(item)}, got {_show(whole)}"
            return
        position = found + 1


def _same(part: Any, whole: Any) -> bool:
    if isinstance(whole, bytes):
        return isinstance(part, str) and decode_base64(part) == whole
    return isinstance(part, bool) == isinstance(whole, bool) and bool(part == whole)


def decode_base64(text: str) -> bytes | None:
    """Decode base64 as leniently as in a request, or return None."""
    try:
        return read_bytes(text)
    except InvalidScalar:
        return None


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _show(value: Any) -> str:
    return quote_text(write_json(value), quoted=False)


def quote_text(text: str | None, *, quoted: bool = True) -> str:
    text = text or ""
    shown = text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}…"
    return repr(shown) if quoted else shown

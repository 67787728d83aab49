"""A sample of each field goes through the translation; the row says what came of it, and nobody writes it by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from dragoman.dialects.base import ClientDialect, Target
from dragoman.errors import InvalidRequest
from dragoman.notes import Note
from dragoman.translation.exchange import Exchange

Json = dict[str, Any]
MODEL = "gemini-3.8-flash"
#: Models of other generations, told of where they differ.
OTHERS = ("gemini-2.5-flash",)
_SHOWN_PATHS = 3
_SHOWN_CHARACTERS = 70
_DEPTH = 3
_INDEX = re.compile(r"\[\d+\]")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # where in memory something lies is no difference


class Sample(msgspec.Struct, frozen=True):
    """A field under the name its documentation has, and what is laid over the plain request to send it.

    `beside` is in the plain request too: what the field needs and is not about.
    """

    field: str
    patch: Json
    beside: Json = {}


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One dialect: how it is spoken, the plain request, the samples, and the fields that must be among them."""

    file: str
    title: str
    intro: str
    client: Callable[[], ClientDialect]
    base: Json
    samples: Sequence[Sample]
    required: Sequence[str]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one request came to."""

    upstream: Json
    request: str = ""
    notes: tuple[Note, ...] = ()
    refusal: str = ""


def render(page: Page) -> str:
    rows = [_row(page, sample) for sample in page.samples]
    return "\n".join(
        [
            f"# {page.title}: what becomes of a request",
            "",
            page.intro,
            "",
            "Made by `make bless`: a sample of each field was sent through the translation, to "
            f"`{MODEL}` unless a row names another model. [The overview](index.md) explains the terms.",
            "",
            "| field | sample | | in Google's request, or why not |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def missing(page: Page) -> list[str]:
    """Fields of the code that no sample shows."""
    shown = [sample.field for sample in page.samples]
    return [name for name in page.required if not any(_shows(field, name) for field in shown)]


def _shows(field: str, name: str) -> bool:
    return field == name or field.startswith((f"{name}.", f"{name}[", f"{name}:"))


def _row(page: Page, sample: Sample) -> str:
    verdict, words = _judge(page, sample, MODEL)
    for other in OTHERS:
        theirs, their_words = _judge(page, sample, other)
        if theirs != verdict:
            words = f"{words}{'; ' if words else ''}on `{other}`: {theirs}{', ' + their_words if their_words else ''}"
    return f"| `{sample.field}` | {_shown(page, sample)} | {verdict} | {words} |"


def _judge(page: Page, sample: Sample, model: str) -> tuple[str, str]:
    base = _merge(page.base, sample.beside)
    plain = _send(page, base, model)
    tried = _send(page, _merge(base, sample.patch), model)
    if tried.refusal:
        return "refused", tried.refusal
    notes = [note for note in tried.notes if note not in plain.notes]
    places = list(dict.fromkeys(_trim(path) for path in _differences(plain.upstream, tried.upstream)))
    places = [place for place in places if place != "contents[].role"] or places
    whys = list(dict.fromkeys(_plain(note.why) for note in notes))
    words = "; ".join([", ".join(f"`{place}`" for place in places[:_SHOWN_PATHS]), *whys[:2]]).strip("; ")
    losses = [note.kind for note in notes if note.kind != "sentinel"]  # a signature that no sample can have
    if losses:
        return ("dropped" if set(losses) == {"dropped"} and not places else "changed"), words
    if places:
        return "kept", words
    return ("used", "") if tried.request != plain.request else ("tolerated", "")


def _send(page: Page, body: Json, model: str) -> Outcome:
    numbers = iter(range(1000))
    exchange = Exchange(page.client(), new_id=lambda: f"token{next(numbers):04d}")
    try:
        exchange.decode(json.dumps(body).encode())
        upstream = json.loads(exchange.encode(Target(model=model)))
    except InvalidRequest as error:
        return Outcome(upstream={}, refusal=_plain(str(error)))
    request = _ADDRESS.sub("", repr((exchange.request, exchange._echo)))
    return Outcome(upstream=upstream, request=request, notes=exchange.notes)


def _differences(before: object, after: object) -> Iterator[str]:
    """Leaves of `after` that are new or not the same; if there are none, what is gone."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    fresh = [path for path, value in new.items() if old.get(path, ...) != value]
    yield from fresh or (f"{path} (gone)" for path in old if path not in new)


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    match value:
        case dict() if value:
            for name, one in value.items():
                yield from _leaves(one, f"{path}.{name}" if path else name)
        case list() if value:
            for number, one in enumerate(value):
                yield from _leaves(one, f"{path}[{number}]")
        case _:
            yield path, value


def _trim(path: str) -> str:
    """Which message or part does not matter, nor what is inside it."""
    return ".".join(_INDEX.sub("[]", path).split(".")[:_DEPTH])


def _merge(below: Json, above: Json) -> Json:
    merged = dict(below)
    for name, value in above.items():
        mine = merged.get(name)
        both = isinstance(value, dict) and isinstance(mine, dict)
        merged[name] = _merge(mine, value) if both else value  # type: ignore[arg-type]
    return merged


def _shown(page: Page, sample: Sample) -> str:
    """The value itself, if it is short."""
    value: Any = sample.patch
    while True:
        if isinstance(value, dict) and len(value) == 1:
            value = next(iter(value.values()))
        elif isinstance(value, dict) and value.get("role") and set(value) <= {"role", "content", "parts"}:
            value = value.get("content", value.get("parts"))
        elif isinstance(value, list) and value:
            value = next((one for one in value if one not in _messages(page.base)), value[0])
        else:
            break
    text = json.dumps(value, ensure_ascii=False)
    return f"`{_plain(text)}`" if len(text) <= _SHOWN_CHARACTERS else ""


def _messages(base: Json) -> list[Any]:
    return [one for value in base.values() if isinstance(value, list) for one in value]


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("`", "'")

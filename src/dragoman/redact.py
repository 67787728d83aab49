"""Remove secrets from texts before they are logged, stored or sent: known secrets and strings that look like one.

JSON stays valid: only the content of strings is replaced. Redaction takes linear time, and a text without any mark
of a secret costs a few searches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from dragoman.errors import DragomanError, UpstreamError

REDACTED = "[redacted]"
_MARK = REDACTED.encode()
_MIN_KNOWN = 8  # characters; a shorter secret could be an ordinary word
_SHORT = 1024  # bytes; up to this length one combined search is faster than one per mark
_KNOWN_CLEAN = 256  # size of the cache of texts without secrets: names, addresses and clients repeat

#: Formats of keys: prefix -> pattern of the rest.
_SHAPES: dict[str, str] = {
    **dict.fromkeys(("AIza", "AQ."), r"[\w-]{20,}"),  # Google
    "ya29.": r"[\w.-]{10,}",
    "dgm-": r"[\w-]{16,}",  # this gateway
    **dict.fromkeys(("sk-", "sk_", "rk-", "rk_", "pk-", "pk_"), r"[\w-]{16,}"),  # OpenAI, Anthropic, Stripe
    "ksk_": r"[\w-]{16,}",  # Kiro
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), r"\w{16,}"),
    "glpat-": r"[\w-]{16,}",
    "xox": r"[a-z]-[\w-]{10,}",  # Slack
    "xapp-": r"[\w-]{10,}",
    **dict.fromkeys(("AKIA", "ASIA", "AIDA", "AROA"), "[A-Z0-9]{12,}"),  # AWS
    "AWS4-HMAC-SHA256": r'\s[^"\n]*',
    **dict.fromkeys(("hf_", "npm_"), r"\w{16,}"),
    "pypi-": r"[\w-]{16,}",
    "eyJ": r"(?<![\w-]eyJ)[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?",  # JSON web tokens
    "-----BEGIN": r"[^-\"\\]*PRIVATE KEY-----(?:[^\"\\]|\\+[nrt/])*?"
    r"(?:-----END[^-\"\\]*PRIVATE KEY-----|(?=\\*+\"|\\++[^nrt/])|\Z)",
}
_BY_SHAPE = {
    mark.encode(): re.compile((re.escape(mark) + rest).encode(), re.ASCII) for mark, rest in _SHAPES.items()
}
_IN_URL = re.compile(rb'(?P<lead>://[^\s/@:"]*:)(?P<value>[^\s/@"]++)(?=@)')

_QUOTE = r"(?:\\*[\"'])?"
#: A possible secret; numbers, literals, objects and arrays of JSON are excluded.
_WORD = r"(?![\[{])(?!(?:[\d.eE+-]+|true|false|null)\s*[,}\]])(?:[^\s\"',;&\\]|\\(?![\\\"'nrt])){4,}"
_VALUE = rf"(?P<value>{_WORD})"
_GIVEN = re.compile(rf"{_QUOTE}\s*[:=]\s*{_QUOTE}{_VALUE}".encode())
#: Known authentication schemes, which are kept. After an unknown one both words are redacted.
_SCHEMES = r"(?i:aws4-hmac-sha256|apikey|basic|bearer|digest|negotiate|token)"
_HEADER = re.compile(
    rf"{_QUOTE}\s*[:=]\s*+{_QUOTE}+(?:{_SCHEMES}\s++)?+{_QUOTE}(?P<value>{_WORD}(?:[ \t]+{_WORD})?)".encode()
)
_SCHEME = re.compile(rf"\s+{_QUOTE}{_VALUE}".encode())
_BASE64 = re.compile(rb"\s+(?P<value>(?=[A-Za-z][a-z]*+[A-Z0-9])[A-Za-z0-9+/]{8,}+={0,2})")
#: Words that precede a secret, and the pattern of what follows them.
_WORDS: dict[bytes, re.Pattern[bytes]] = {
    b"authorization": _HEADER,
    b"bearer": _SCHEME,
    b"basic": _BASE64,
    **dict.fromkeys(
        (b"api_key", b"api-key", b"apikey", b"secret", b"token", b"password", b"passwd", b"passphrase"),
        _GIVEN,
    ),
    **dict.fromkeys((b"credential", b"credentials"), _GIVEN),
    **dict.fromkeys((b"--api-key", b"--secret", b"--token", b"--password"), _SCHEME),
}
_NAMES = re.compile(
    r"(?i)^(?!max)(?:.*[_.-]|.*[a-z]|)(?:passw(?:or)?d|passphrase|secret|token|api_?-?key|apikey|authorization|cookie"
    r"|credentials?|private_?-?key|access_?-?key)s?$"
)


class Redactor:
    """Redacts texts; `known` are the secrets of this process, which are removed in any form."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        spelt = {
            form.encode() for secret in known if len(secret) >= _MIN_KNOWN for form in _spellings(secret)
        }
        self._known = sorted(spelt, key=len, reverse=True)
        self._marks = re.compile(b"|".join(map(re.escape, (*self._known, *_BY_SHAPE, b"://"))))
        self._clean: set[str] = set()  # cache of texts without secrets

    def scrub(self, text: str) -> str:
        """Remove keys from a text for its intended reader; keep values that only follow a word like `password`."""
        if text in self._clean:
            return text
        body = _encode(text)
        clean = self._scrub(body)
        if clean is not body:
            return _decode(clean)
        if len(body) < _SHORT:
            if len(self._clean) >= _KNOWN_CLEAN:
                self._clean.clear()
            self._clean.add(text)
        return text

    def text(self, text: str) -> str:
        """Redact a text for logs and files: remove keys and what follows a word like `password`."""
        return _decode(self.body(_encode(text)))

    def redact_error(self, error: DragomanError) -> DragomanError:
        """Redact an error for the client, in place: Google's message may contain the API key (known problem Q11)."""
        error.message, error.where = self.scrub(error.message), self.scrub(error.where)
        if isinstance(error, UpstreamError):
            error.native = self._scrub(error.native)
        return error

    def body(self, body: bytes) -> bytes:
        """Like `text`, for the bytes of a text or of JSON."""
        scrubbed = self._scrub(body)
        clean = _after_words(scrubbed)
        # A removed value may have hidden the format of a key next to it.
        return clean if clean is scrubbed else self._scrub(clean)

    def _scrub(self, body: bytes) -> bytes:
        if len(body) < _SHORT and self._marks.search(body) is None:
            return body
        for secret in self._known:
            body = body.replace(secret, _MARK)
        for mark, shape in _BY_SHAPE.items():
            if mark in body:
                body = shape.sub(_MARK, body)
        return _IN_URL.sub(rb"\g<lead>" + _MARK, body) if b"://" in body else body


_DEFAULT = Redactor()


def redact(text: str) -> str:
    """Remove everything that looks like a key, a password or a token."""
    return _DEFAULT.text(text)


def is_secret_name(name: str) -> bool:
    """Whether a value with this name is a secret, whatever it looks like."""
    return _NAMES.search(name) is not None


def redact_value(value: Any, *, max_text: int, name: str = "") -> Any:
    """Redact a JSON value and cut its strings to `max_text` characters.

    A value under a name like `password`, or after an argument like `--token`, is removed whatever it looks like.
    """
    if name and is_secret_name(name) and isinstance(value, str | int | float) and not isinstance(value, bool):
        return REDACTED
    if isinstance(value, str):
        text = redact(value)  # before the cut, which could leave part of a key that no longer looks like one
        return (
            text if len(text) <= max_text else f"{text[:max_text]} [{len(text) - max_text} more characters]"
        )
    if isinstance(value, list):
        flags = [name, *(one if isinstance(one, str) and one.startswith("-") else name for one in value)]
        return [
            redact_value(one, max_text=max_text, name=flag) for one, flag in zip(value, flags, strict=False)
        ]
    if isinstance(value, dict):
        return {
            redact(str(key)): redact_value(one, max_text=max_text, name=key) for key, one in value.items()
        }
    return value


def _spellings(secret: str) -> tuple[str, ...]:
    """Return the secret as it is, percent-encoded, and escaped for JSON."""
    return secret, quote(secret, safe=""), json.dumps(secret)[1:-1]


def _after_words(body: bytes) -> bytes:
    """Redact the values that follow one of `_WORDS`; return the same object if there are none."""
    lowered = body.lower()
    spans = sorted(span for word, pattern in _WORDS.items() for span in _spans(body, lowered, word, pattern))
    pieces: list[bytes] = []
    end = 0
    for start, stop in spans:
        if start >= end:
            pieces += (body[end:start], _MARK)
        end = max(end, stop)
    return b"".join((*pieces, body[end:])) if pieces else body


def _spans(body: bytes, lowered: bytes, word: bytes, pattern: re.Pattern[bytes]) -> Iterator[tuple[int, int]]:
    at = lowered.find(word)
    while at >= 0:
        end = at + len(word)
        found = pattern.match(body, end)
        if found is not None:
            yield found.span("value")
            end = found.end()
        at = lowered.find(word, end)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(body: bytes) -> str:
    return body.decode("utf-8", "surrogatepass")

"""Decode clients' JSON: tolerate lone surrogates, and report the path of a mistake in the error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

from dragoman.errors import InvalidRequest

T = TypeVar("T")

#: Matches escapes. JavaScript clients that truncate text split surrogate pairs, and JSON decoders refuse a lone
#: surrogate together with the whole request.
_ESCAPES = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)"
)
_PATH_MARK = " - at `"


def replace_lone_surrogates(body: bytes) -> bytes:
    """Replace lone surrogate escapes by U+FFFD; return the same object if there are none."""
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    return _ESCAPES.sub(_replace_lone, body)


def validate_text(raw: bytes, where: str = "") -> bytes:
    """Validate JSON text that is forwarded undecoded: it must be UTF-8; lone surrogate escapes are replaced."""
    return replace_lone_surrogates(check_utf8(raw, where))


def check_utf8(raw: bytes, where: str = "") -> bytes:
    """Return the bytes if they are valid UTF-8, otherwise raise `InvalidRequest`; escapes are not checked."""
    if not raw.isascii():
        decode(bytes.decode, raw, where)
    return raw


def _replace_lone(match: re.Match[bytes]) -> bytes:
    escape = match[0]
    lone = len(escape) == 6 and escape[1:2] == b"u"
    return b"\\ufffd" if lone else escape


def decode_leniently(decoder: Callable[[bytes], T], body: bytes) -> T:
    """Like `decode`, but if it fails, replace lone surrogates and try once more."""
    try:
        return decode(decoder, body)
    except InvalidRequest:
        whole = replace_lone_surrogates(body)
        if whole is body:
            raise
        return decode(decoder, whole)


def decode(decoder: Callable[[bytes], T], body: bytes | msgspec.Raw, where: str = "") -> T:
    """Return `decoder(body)`. Raise `InvalidRequest` with the path of the mistake, relative to `where`, if it fails."""
    try:
        return decoder(body)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(_PATH_MARK)
        place = path.removeprefix("key in ").removeprefix("$").removesuffix("`")
        raise InvalidRequest(message, where=where + place if where else place.removeprefix(".")) from None
    except msgspec.DecodeError as error:
        why = f"the body is not valid JSON: {error}" if bytes(body).strip() else "the body is empty"
        raise InvalidRequest(why, where=where) from None
    except UnicodeDecodeError:
        raise InvalidRequest("the body is not valid UTF-8", where=where) from None
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply", where=where) from None
